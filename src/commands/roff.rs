//! The Markdown that the manual is written in, as roff with the macros of man(7).

use std::fmt::Write;

/// A part of a text, as Markdown has it.
#[derive(Debug, PartialEq)]
enum Block {
    /// The marks before it count the level.
    Heading(usize, String),
    Paragraph(String),
    /// Lines that stay as they are.
    Code(Vec<String>),
    /// What stands before the text: a dash, or a number with its dot.
    Item(String, String),
    /// Rows of cells; the first one is the header.
    Table(Vec<Vec<String>>),
}

/// A text as the body of a manual page. A table becomes a list: the first cell of a row is what is explained, the last
/// explains it, and those between are told by the names of their columns.
pub(super) fn roff(markdown: &str) -> String {
    let mut page = String::new();
    // The macro of a heading leaves the room that a paragraph would ask for.
    let mut after_heading = false;
    for block in blocks(markdown) {
        match &block {
            Block::Heading(level, text) => {
                page += &control(if *level <= 2 { ".SH" } else { ".SS" }, &[&text.replace('`', "")]);
            }
            Block::Paragraph(text) => {
                if !after_heading {
                    page += ".PP\n";
                }
                page += &line(&spans(text));
            }
            Block::Code(lines) => {
                page += ".IP \"\" 4\n.EX\n";
                lines.iter().for_each(|code| page += &line(&escaped(code, true)));
                page += ".EE\n";
            }
            Block::Item(mark, text) => {
                page += if mark == "-" { ".IP \\(bu 2\n" } else { ".IP " };
                if mark != "-" {
                    let _ = writeln!(page, "{mark} 4");
                }
                page += &line(&spans(text));
            }
            Block::Table(rows) => table(rows, &mut page),
        }
        after_heading = matches!(block, Block::Heading(..));
    }
    page
}

/// A call of a macro.
pub(super) fn control(name: &str, arguments: &[&str]) -> String {
    let quoted: Vec<String> = arguments.iter().map(|text| format!("\"{}\"", escaped(text, false))).collect();
    format!("{name} {}\n", quoted.join(" "))
}

fn table(rows: &[Vec<String>], page: &mut String) {
    let [header, rows @ ..] = rows else { return };
    for row in rows {
        let [tag, middle @ .., about] = &row[..] else { continue };
        let told: Vec<String> = (header.iter().skip(1).zip(middle))
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(column, cell)| format!("{column} {cell}"))
            .collect();
        let told = if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) };
        *page += &format!(".TP\n{}{}", line(&spans(tag)), line(&spans(&format!("{about}{told}"))));
    }
}

/// A line of text that no macro begins with. An empty one is visible to nobody, but asks for no paragraph.
fn line(text: &str) -> String {
    let guard = if text.is_empty() || text.starts_with('.') { "\\&" } else { "" };
    format!("{guard}{text}\n")
}

/// Text with what is bold or code in bold, and links with their addresses behind them.
fn spans(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['`', '*', '[']) {
        let (before, from) = rest.split_at(at);
        out += &escaped(before, false);
        let between = |open: &str, close: &str| from.strip_prefix(open)?.split_once(close);
        let link = between("[", "](").filter(|(text, _)| !text.contains(']'));
        if let Some((code, after)) = between("`", "`") {
            out += &format!("\\fB{}\\fR", escaped(&code.replace("\\|", "|"), true));
            rest = after;
        } else if let Some((bold, after)) = between("**", "**") {
            out += &format!("\\fB{}\\fR", spans(bold).replace("\\fR", "\\fB"));
            rest = after;
        } else if let Some((text, (address, after))) =
            link.and_then(|(text, after)| Some((text, after.split_once(')')?)))
        {
            out += &format!("{} ({})", spans(text), escaped(address, true));
            rest = after;
        } else {
            out += &escaped(&from[..1], false);
            rest = &from[1..];
        }
    }
    out + &escaped(rest, false)
}

/// Text in which roff sees nothing of its own. A hyphen inside a word of prose may end a line; any other is what is typed.
fn escaped(text: &str, is_code: bool) -> String {
    let text = if is_code { text.to_string() } else { text.replace("\\|", "|") };
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let in_word = before.is_alphanumeric() && chars.peek().is_some_and(|next| next.is_alphanumeric());
        match c {
            '\\' => out += "\\e",
            '-' if is_code || !in_word => out += "\\-",
            '\'' => out += "\\(aq",
            '"' => out += "\\(dq",
            '`' => out += "\\(ga",
            '^' => out += "\\(ha",
            '~' => out += "\\(ti",
            ' '..='~' => out.push(c),
            c if c.is_control() => {}
            c => drop(write!(out, "\\[u{:04X}]", c as u32)),
        }
        before = c;
    }
    out
}

fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    // What the next line may go on with, and blank lines that belong to code if more of it follows.
    let (mut is_open, mut blank_lines, mut is_fenced) = (false, 0, false);
    for text in markdown.lines() {
        let is_fence = text.starts_with("```");
        let code = if is_fenced { Some(text) } else { text.strip_prefix("    ") };
        if is_fence {
            is_fenced = !is_fenced;
            is_open = false;
            continue;
        }
        match (blocks.last_mut().filter(|_| is_open), code) {
            (Some(Block::Code(lines)), Some(code)) => {
                lines.extend(std::iter::repeat_n(String::new(), blank_lines));
                lines.push(code.to_string());
            }
            (Some(Block::Item(_, begun)), Some(_)) => *begun += &format!(" {}", text.trim()),
            (_, Some(code)) => blocks.push(Block::Code(vec![code.to_string()])),
            (Some(Block::Code(_)), None) if text.is_empty() => {
                blank_lines += 1;
                continue;
            }
            (_, None) if text.is_empty() => {
                is_open = false;
                continue;
            }
            (open, None) => match (begun(text), open) {
                (Some(Block::Table(row)), Some(Block::Table(rows))) => rows.extend(row),
                (Some(block), _) => blocks.push(block),
                (None, Some(Block::Paragraph(begun) | Block::Item(_, begun))) => {
                    *begun += &format!(" {}", text.trim());
                }
                (None, _) => blocks.push(Block::Paragraph(text.trim().to_string())),
            },
        }
        blank_lines = 0;
        is_open = !matches!(blocks.last(), Some(Block::Heading(..)));
    }
    blocks
}

/// The block that a line begins by its first characters.
fn begun(text: &str) -> Option<Block> {
    if let Some(cells) = text.strip_prefix('|').map(|text| text.trim_end().trim_end_matches('|')) {
        // A bar with a backslash before it is part of its cell.
        let cells = cells.replace("\\|", "\u{0}");
        let cells = cells.split('|').map(|cell| cell.trim().replace('\u{0}', "\\|"));
        let row: Vec<String> = cells.collect();
        let is_rule = row.iter().all(|cell| cell.starts_with("--"));
        return Some(Block::Table(if is_rule { Vec::new() } else { vec![row] }));
    }
    let (mark, rest) = text.split_once(' ')?;
    let number = mark.strip_suffix('.').unwrap_or_default();
    let rest = rest.trim().to_string();
    match mark {
        "#" | "##" | "###" | "####" => Some(Block::Heading(mark.len(), rest)),
        "-" | "*" => Some(Block::Item("-".to_string(), rest)),
        _ if !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()) => {
            Some(Block::Item(mark.to_string(), rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_block_has_its_macro() {
        let page = roff(
            "## Stop `it`\n\nOne\ntwo.\n\nThree.\n\n    a  b\n\n    c\n\n- x\n  y\n- z\n1. one\n\n### Less\n\nEnd.\n",
        );
        let code = ".IP \"\" 4\n.EX\na  b\n\\&\nc\n.EE\n";
        let list = ".IP \\(bu 2\nx y\n.IP \\(bu 2\nz\n.IP 1. 4\none\n";
        assert_eq!(page, format!(".SH \"Stop it\"\nOne two.\n.PP\nThree.\n{code}{list}.SS \"Less\"\nEnd.\n"));
        assert_eq!(roff("```\n.x\n# y\n```\nz\n"), ".IP \"\" 4\n.EX\n\\&.x\n# y\n.EE\n.PP\nz\n");
    }

    #[test]
    fn a_table_is_a_list_of_what_it_explains() {
        let page = roff(
            "| name | default | what |\n|---|---|---|\n| `a\\|b` | `1` | First. |\n| c |  | Second. |\n",
        );
        assert_eq!(page, ".TP\n\\fBa|b\\fR\nFirst. (default \\fB1\\fR)\n.TP\nc\nSecond.\n");
    }

    #[test]
    fn spans_are_bold_and_links_show_where_they_lead() {
        assert_eq!(
            spans("a **b `c`** [d](https://e/f-g) [[auth]] 2 * 3"),
            "a \\fBb \\fBc\\fB\\fR d (https://e/f\\-g) [[auth]] 2 * 3"
        );
    }

    /// Nothing of a text is a request, an escape or a typographic sign.
    #[test]
    fn roff_sees_nothing_of_its_own_in_a_text() {
        assert_eq!(roff(".so /etc/passwd\n"), ".PP\n\\&.so /etc/passwd\n");
        assert_eq!(roff("'br\n"), ".PP\n\\(aqbr\n");
        assert_eq!(
            escaped("\\fB a-b --c \"d\" ~e ^f `g` …", false),
            "\\efB a-b \\-\\-c \\(dqd\\(dq \\(tie \\(haf \\(gag\\(ga \\[u2026]"
        );
        assert_eq!(escaped("a-b", true), "a\\-b");
        assert_eq!(roff("    .x\n    'y\n"), ".IP \"\" 4\n.EX\n\\&.x\n\\(aqy\n.EE\n");
        assert_eq!(control(".SH", &["a \"b\""]), ".SH \"a \\(dqb\\(dq\"\n");
    }
}
