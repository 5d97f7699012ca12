//! `hotrow completions`: prints the script with which a shell completes commands and options.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

/// `hotrow completions`
#[derive(clap::Args)]
#[command(after_help = "The packages install these scripts. Without a package, for example:\n  \
    hotrow completions bash > ~/.local/share/bash-completion/completions/hotrow\n  \
    hotrow completions zsh > \"${fpath[1]}/_hotrow\"\n  \
    hotrow completions fish > ~/.config/fish/completions/hotrow.fish")]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Runs the command.
pub fn run<C: CommandFactory>(args: &Args) -> std::io::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "hotrow", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
