//! Pages with a text that is known: our own words in layouts as sites have them.

use crate::base::Rng;
use std::fmt::Write;

/// A page and what a reader would read of it.
pub(super) struct KnownPage {
    pub name: String,
    pub html: String,
    pub text: String,
}

struct Language {
    code: &'static str,
    /// Sentences with a place for a name (`@`) and one for a number (`#`).
    sentences: [&'static str; 8],
    menu: [&'static str; 6],
    notice: &'static str,
    comment: &'static str,
}

const LANGUAGES: [Language; 6] = [
    Language {
        code: "en",
        sentences: [
            "The council of @ agreed on Tuesday to rebuild the northern pier, at a cost of # thousand.",
            "Fishermen who had waited for # years said that the decision came late, but not too late.",
            "In the market hall of @ people spoke of little else, and most of them were in favour.",
            "A report from last winter had counted # cracks in the oldest part of the wall.",
            "Engineers want to begin with the foundations, because water has washed out the sand below them.",
            "Until the work is done, ferries to @ leave from the coal quay on the other side of the river.",
            "The mayor thanked the # volunteers who had kept the lighthouse open through the storms.",
            "Whether the money lasts is another matter; the treasurer of @ would not promise it.",
        ],
        menu: ["Home", "Politics", "Business", "Sport", "Culture", "Weather"],
        notice: "We and our partners use cookies to improve your experience. Accept all or manage settings.",
        comment: "Totally agree with the first poster, they should have done this ages ago!!",
    },
    Language {
        code: "de",
        sentences: [
            "Der Stadtrat von @ hat am Dienstag beschlossen, die nördliche Mole für # Tausend neu zu bauen.",
            "Fischer, die # Jahre gewartet hatten, nannten die Entscheidung spät, aber nicht zu spät.",
            "In der Markthalle von @ sprach man von wenig anderem, und die meisten waren dafür.",
            "Ein Gutachten aus dem letzten Winter zählte # Risse im ältesten Teil der Mauer.",
            "Ingenieure wollen mit den Fundamenten beginnen, weil das Wasser den Sand darunter ausgespült hat.",
            "Bis die Arbeiten fertig sind, legen die Fähren nach @ vom Kohlenkai auf der anderen Seite ab.",
            "Die Bürgermeisterin dankte den # Freiwilligen, die den Leuchtturm offen gehalten hatten.",
            "Ob das Geld reicht, ist eine andere Frage; der Kämmerer von @ wollte es nicht versprechen.",
        ],
        menu: ["Startseite", "Politik", "Wirtschaft", "Sport", "Kultur", "Wetter"],
        notice: "Wir verwenden Cookies, um unser Angebot zu verbessern. Alle annehmen oder Einstellungen ändern.",
        comment: "Sehe ich genauso, das hätte man schon vor Jahren machen müssen!!",
    },
    Language {
        code: "fr",
        sentences: [
            "Le conseil de @ a décidé mardi de reconstruire la jetée du nord, pour un coût de # mille.",
            "Les pêcheurs, qui attendaient depuis # ans, jugent la décision tardive, mais pas trop tardive.",
            "Sous la halle de @ on ne parlait guère d'autre chose, et la plupart y étaient favorables.",
            "Un rapport de l'hiver dernier avait compté # fissures dans la partie la plus ancienne du mur.",
            "Les ingénieurs veulent commencer par les fondations, car l'eau a emporté le sable en dessous.",
            "Jusqu'à la fin des travaux, les bacs pour @ partiront du quai au charbon, sur l'autre rive.",
            "La maire a remercié les # bénévoles qui avaient tenu le phare ouvert pendant les tempêtes.",
            "Quant à savoir si l'argent suffira, le trésorier de @ n'a rien voulu promettre.",
        ],
        menu: ["Accueil", "Politique", "Économie", "Sport", "Culture", "Météo"],
        notice: "Nous utilisons des cookies pour améliorer votre expérience. Tout accepter ou paramétrer.",
        comment: "Tout à fait d'accord, il aurait fallu le faire depuis longtemps !!",
    },
    Language {
        code: "es",
        sentences: [
            "El concejo de @ acordó el martes reconstruir el muelle del norte, con un coste de # mil.",
            "Los pescadores, que esperaban desde hace # años, dijeron que la decisión llega tarde, pero llega.",
            "En el mercado de @ apenas se hablaba de otra cosa, y casi todos estaban a favor.",
            "Un informe del invierno pasado había contado # grietas en la parte más antigua del muro.",
            "Los ingenieros quieren empezar por los cimientos, porque el agua se ha llevado la arena.",
            "Hasta que terminen las obras, los barcos a @ saldrán del muelle del carbón, en la otra orilla.",
            "La alcaldesa dio las gracias a los # voluntarios que mantuvieron abierto el faro.",
            "Si el dinero alcanza es otra cuestión; el tesorero de @ no quiso prometerlo.",
        ],
        menu: ["Inicio", "Política", "Economía", "Deportes", "Cultura", "Tiempo"],
        notice: "Usamos cookies para mejorar su experiencia. Aceptar todo o cambiar la configuración.",
        comment: "Totalmente de acuerdo, tenían que haberlo hecho hace años!!",
    },
    Language {
        code: "ru",
        sentences: [
            "Совет города @ решил во вторник построить заново северный мол, это обойдётся в # тысяч.",
            "Рыбаки, которые ждали # лет, сказали, что решение пришло поздно, но не слишком поздно.",
            "На рынке города @ почти не говорили ни о чём другом, и большинство было за.",
            "В отчёте прошлой зимы насчитали # трещин в самой старой части стены.",
            "Инженеры хотят начать с фундамента, потому что вода вымыла под ним песок.",
            "Пока идут работы, паромы в @ уходят от угольной пристани на другом берегу реки.",
            "Мэр поблагодарила # добровольцев, которые не дали закрыть маяк во время штормов.",
            "Хватит ли денег, другой вопрос; казначей города @ обещать этого не стал.",
        ],
        menu: ["Главная", "Политика", "Экономика", "Спорт", "Культура", "Погода"],
        notice: "Мы используем файлы cookie, чтобы сайт работал лучше. Принять все или настроить.",
        comment: "Полностью согласен, давно надо было это сделать!!",
    },
    Language {
        code: "zh",
        sentences: [
            "@市议会星期二决定重建北面的码头，费用为#万元，工程将在明年春天开始。",
            "等待了#年的渔民们说，这个决定来得很晚，但是还不算太晚，他们感到高兴。",
            "在@的市场里，人们几乎不谈别的事情，大多数人都表示赞成这个计划。",
            "去年冬天的一份报告指出，最古老的那一段墙上有#条裂缝，需要马上修理。",
            "工程师们希望先从地基开始，因为河水已经把下面的沙子冲走了很多。",
            "在工程完成以前，开往@的渡船将从河对岸的煤炭码头出发，每天#班。",
            "市长感谢#名志愿者，他们在暴风雨中一直让灯塔保持开放，没有休息。",
            "钱够不够是另外一个问题，@的财务主管不愿意对此作出任何保证。",
        ],
        menu: ["首页", "政治", "经济", "体育", "文化", "天气"],
        notice: "我们使用小型文本文件来改善您的体验。全部接受或更改设置。",
        comment: "完全同意楼上的看法，早就应该这样做了！",
    },
];

const NAMES: [&str; 8] = ["Harwick", "Ostrava", "Lindholm", "Brenne", "Quartz", "Selby", "Norden", "Vilar"];
const LAYOUTS: usize = 6;

/// Pages by their number, always the same.
pub(super) fn known_pages(count: usize) -> Vec<KnownPage> {
    (0..count).map(known_page).collect()
}

fn known_page(number: usize) -> KnownPage {
    let (layout, language) = (number % LAYOUTS, &LANGUAGES[number / LAYOUTS % LANGUAGES.len()]);
    let mut rng = Rng::new(number as u64 + 1);
    let title = sentence(language, &mut rng).trim_end_matches(['.', '。']).to_string();
    let paragraphs: Vec<String> = (0..4 + rng.below(12))
        .map(|_| (0..2 + rng.below(4)).map(|_| sentence(language, &mut rng)).collect::<Vec<_>>().join(" "))
        .collect();
    let text = paragraphs.join("\n");
    let body = body(layout, language, &title, &paragraphs, &mut rng);
    let html = format!(
        "<!doctype html><html lang={}><head><meta charset=utf-8><title>{title} | The Quay</title>{}{}</head><body>{body}{}</body></html>",
        language.code,
        "<meta property=article:published_time content=2024-03-05T06:07:08Z>",
        style(&mut rng),
        script(&mut rng)
    );
    KnownPage { name: format!("{number:02}-{}-{layout}", language.code), html, text }
}

fn sentence(language: &Language, rng: &mut Rng) -> String {
    let pick = language.sentences[rng.below(8) as usize];
    let name = NAMES[rng.below(8) as usize];
    pick.replace('@', name).replace('#', &(2 + rng.below(900)).to_string())
}

/// Pages carry more code than text.
fn style(rng: &mut Rng) -> String {
    let mut css = String::from("<style>");
    for _ in 0..200 + rng.below(300) {
        let _ = write!(
            css,
            ".c{}>.d{}{{margin:{}px;color:#{:06x}}}",
            rng.below(999),
            rng.below(999),
            rng.below(40),
            rng.below(1 << 24)
        );
    }
    css + "</style>"
}

fn script(rng: &mut Rng) -> String {
    let mut code = String::from("<script>window.state={");
    for item in 0..300 + rng.below(600) {
        let _ = write!(code, "\"k{item}\":{{\"id\":{},\"t\":\"<b>x</b>\"}},", rng.next_u64());
    }
    code + "}</script>"
}

fn links(language: &Language, count: u64, rng: &mut Rng) -> String {
    let mut list = String::from("<ul class=teasers>");
    for _ in 0..count {
        let title = sentence(language, rng);
        let short: String = title.chars().take(48).collect();
        let _ = write!(
            list,
            "<li class=teaser><a href=/{}><img src=/i.jpg alt=''>{short}…</a></li>",
            rng.below(99_999)
        );
    }
    list + "</ul>"
}

fn menu(language: &Language) -> String {
    let items: Vec<String> = language
        .menu
        .iter()
        .map(|item| format!("<li><a href='/{item}'><svg><path d='M0 0h9v9z'/></svg>{item}</a></li>"))
        .collect();
    format!("<ul class=menu>{}</ul>", items.concat())
}

fn comments(language: &Language, rng: &mut Rng) -> String {
    let mut all = String::from("<div id=comments class=comments><h3>Comments</h3>");
    for _ in 0..2 + rng.below(6) {
        let _ = write!(
            all,
            "<div class=comment><span class=user>user{}</span><p>{}</p></div>",
            rng.below(999),
            language.comment
        );
    }
    all + "</div>"
}

fn body(layout: usize, language: &Language, title: &str, paragraphs: &[String], rng: &mut Rng) -> String {
    let plain: String = paragraphs.iter().map(|text| format!("<p>{text}</p>")).collect();
    let cookies =
        format!("<div class='cookie-banner' role=dialog><p>{}</p><button>OK</button></div>", language.notice);
    let footer = format!(
        "<footer><a href=/imprint>Imprint</a> <a href=/privacy>Privacy</a> © 2024 The Quay{}</footer>",
        menu(language)
    );
    let (head, aside) = (menu(language), links(language, 10 + rng.below(20), rng));
    match layout {
        0 => format!(
            "<header><nav>{head}</nav></header><main><article><h1>{title}</h1>{plain}</article></main><aside>{aside}</aside>{footer}{cookies}"
        ),
        1 => format!(
            "{cookies}<div class=header><div class=nav>{head}</div></div><div class=wrapper><div class='content post-content'><h1 class=headline>{title}</h1>\
             <div class=share-buttons><a href=#>Share</a> <a href=#>Tweet</a></div>{plain}</div><div class=sidebar>{aside}</div></div><div class=footer>{footer}</div>"
        ),
        2 => format!(
            "<table width=100%><tr><td colspan=2>{head}<tr><td width=160 valign=top>{aside}<td valign=top><h1>{title}</h1>{plain}<tr><td colspan=2>{footer}</table>"
        ),
        3 => format!(
            "<div id=page><div id=header>{head}</div><div id=main class=hentry><h2 class=entry-title>{title}</h2><div class=entry-content>{plain}</div>{}</div><div id=sidebar class=widget-area>{aside}</div>{footer}</div>",
            comments(language, rng)
        ),
        4 => {
            let mut broken = String::new();
            for (index, text) in paragraphs.iter().enumerate() {
                let _ = write!(broken, "<p class='article__text t{index}'>{text}</p>");
                if index % 3 == 2 {
                    broken += "<div class='ad advert' aria-hidden=true><span>Advertisement</span><iframe src=/ad></iframe></div>";
                }
            }
            format!(
                "{cookies}<nav>{head}</nav><div class=grid><section class='article__body' itemprop=articleBody><h1>{title}</h1>{broken}</section>\
                 <section class=related><h3>Related</h3>{aside}</section></div>{}{footer}",
                comments(language, rng)
            )
        }
        _ => format!(
            "<nav>{head}</nav><div class=story><h1>{title}</h1><div class=text>{}</div></div><div class=more-stories>{aside}</div>{footer}",
            paragraphs.join("<br><br>")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_the_same_every_time_and_hold_their_text() {
        let (pages, again) = (known_pages(50), known_pages(50));
        for (page, other) in pages.iter().zip(&again) {
            assert_eq!(page.html, other.html);
            assert!(page.text.lines().all(|line| page.html.contains(line)), "{}", page.name);
            assert!(!page.text.contains(['@', '#']), "{}", page.text);
        }
    }
}
