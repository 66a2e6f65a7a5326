use super::Cli;
use super::shared::{Failure, print};
use clap::{Args, CommandFactory, ValueEnum};

/// Print a script that completes nephila's commands and flags in a shell
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila completions bash > ~/.local/share/bash-completion/completions/nephila\n  nephila completions zsh > /usr/local/share/zsh/site-functions/_nephila\n  nephila completions fish > ~/.config/fish/completions/nephila.fish"
)]
pub struct CompletionsArgs {
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl CompletionsArgs {
    pub fn run(self) -> Result<(), Failure> {
        let shell = match self.shell {
            Shell::Bash => clap_complete::Shell::Bash,
            Shell::Zsh => clap_complete::Shell::Zsh,
            Shell::Fish => clap_complete::Shell::Fish,
        };
        // Written to memory first: the writer of scripts panics where stdout fails.
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "nephila", &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}
