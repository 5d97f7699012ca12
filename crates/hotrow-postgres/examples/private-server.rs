//! Starts a private server, prints its address, and stops it on Enter: `cargo run -p hotrow-postgres --example
//! private-server`. With `-- --fetch` it uses downloaded binaries, even if a server is installed.
#![expect(clippy::print_stdout, reason = "a program for a person at a terminal")]
use hotrow_postgres::{Binaries, PrivateServer, Progress};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut last = None;
    let mut show = |progress: Progress| {
        let megabytes = progress.received >> 20;
        if last.replace(megabytes) != Some(megabytes) {
            println!("{megabytes} MB of {:?}", progress.total.map(|total| total >> 20));
        }
    };
    let binaries = match std::env::args().nth(1).as_deref() {
        Some("--fetch") => Binaries::fetch(&mut show)?,
        _ => Binaries::find_with(&mut show)?,
    };
    println!("binaries   {}", binaries.dir().display());

    let server = PrivateServer::builder().binaries(binaries).label("example").start()?;
    println!("version    {}", server.version());
    println!("TCP        {}", server.url());
    println!("socket     {}", server.socket_url());
    println!("data       {}", server.data_dir().display());
    println!("Press Enter to stop it.");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}
