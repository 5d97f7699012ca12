//! `hotrow health`: asks a running gateway whether it is live or ready. The image and the chart use it as their probe.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use hotrow_core::untrusted::visible;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::http::uri::Authority;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::settings::{self, Settings, environment};

/// `hotrow health`
#[derive(clap::Args)]
#[command(after_help = "\
    Live means that the process serves. Restart a gateway that is not live.\n\
    Ready means that its server answers, too. At the address of metrics, one of its servers must have answered within the last\n\
    15 seconds. At the address of http, the server must also have the hotrow schema. A gateway whose server is away keeps its\n\
    clients waiting until the server is back, so do not restart a gateway because it is not ready.\n\n\
    Exit status: 0 if the gateway is live (or ready), 1 if it is not or does not answer, 2 if there is no address to ask or an\n\
    option is wrong.\n\n\
    Examples:\n  \
    hotrow health --config /etc/hotrow/hotrow.toml\n  \
    hotrow health --ready 127.0.0.1:9187")]
pub struct Args {
    /// HOST:PORT or http://HOST:PORT of the gateway's metrics or HTTP; by default the address of metrics in the settings, or else that of http
    #[arg(value_name = "ADDRESS", value_parser = address)]
    address: Option<String>,
    /// Ask whether the gateway is ready, and not only whether it is live
    #[arg(long)]
    ready: bool,
    /// The TOML file with the gateway's settings
    #[arg(long, env = "HOTROW_CONFIG", hide_env = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Longest wait for the answer
    #[arg(long, value_name = "MS", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    timeout_ms: u64,
}

/// Why there is no address to ask.
#[derive(Debug, thiserror::Error)]
enum NoAddress {
    #[error(transparent)]
    Settings(#[from] settings::Error),
    #[error(
        "no address to ask: neither the environment nor the file of --config sets metrics or http; set one of them, or name the address, for example: hotrow health 127.0.0.1:9187"
    )]
    NotSet,
}

/// Why a gateway is not live, or not ready.
#[derive(Debug, thiserror::Error)]
enum Unhealthy {
    #[error("{0}; check that the gateway runs, and that its setting metrics or http has this address")]
    Connect(#[from] io::Error),
    #[error("no answer within {0} ms; read the gateway's log, or raise --timeout-ms")]
    Silent(u64),
    #[error("the answer is not HTTP ({0}); check that this is the address of metrics or http")]
    Protocol(#[from] hyper::Error),
    #[error("{0}")]
    Said(String),
    #[error("another program answered with status {0}; check that this is the address of metrics or http")]
    Other(StatusCode),
}

/// Runs the command.
pub fn run(args: Args) -> io::Result<ExitCode> {
    let address = match args.address.map_or_else(|| of_settings(args.config), Ok) {
        Ok(address) => address,
        Err(error) => {
            writeln!(io::stderr(), "hotrow: {}", crate::visible_lines(&error.to_string()))?;
            return Ok(ExitCode::from(2));
        }
    };
    let state = if args.ready { "ready" } else { "live" };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        let limit = Duration::from_millis(args.timeout_ms);
        let asked = tokio::time::timeout(limit, ask(&address, state)).await;
        asked.unwrap_or(Err(Unhealthy::Silent(args.timeout_ms)))
    });
    // A name that is still being resolved must not prolong the probe.
    runtime.shutdown_background();
    match answer {
        Ok(()) => {
            writeln!(io::stdout(), "hotrow: the gateway at {address} is {state}")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(reason) => {
            let line = format!("hotrow: the gateway at {address} is not {state}: {reason}");
            writeln!(io::stderr(), "{}", visible(&line))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The address in the environment and the settings file.
fn of_settings(config: Option<PathBuf>) -> Result<String, NoAddress> {
    let settings =
        Settings::default().or_variables(&environment::of_process()).map_err(settings::Error::from)?;
    let address = settings.health_address(config.as_deref())?;
    address.map(|address| address.to_string()).ok_or(NoAddress::NotSet)
}

/// HOST:PORT, for the command line.
fn address(text: &str) -> Result<String, String> {
    if text.starts_with("https://") {
        return Err("the gateway serves HTTP without TLS: write http://HOST:PORT or HOST:PORT".to_owned());
    }
    let authority = text.strip_prefix("http://").unwrap_or(text);
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    match authority.parse::<Authority>() {
        Ok(parsed) if parsed.port_u16().is_some() && !authority.contains('@') => Ok(authority.to_owned()),
        _ => Err("it must be HOST:PORT or http://HOST:PORT, for example 127.0.0.1:9187".to_owned()),
    }
}

/// The longest answer that is read. A gateway's are shorter.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Asks the gateway whether it is in this state.
async fn ask(address: &str, state: &str) -> Result<(), Unhealthy> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // An error of the connection is also one of the request.
    tokio::spawn(connection);
    let request = Request::get(format!("/health/{state}")).header(HOST, address).body(Empty::<Bytes>::new());
    let response = sender.send_request(request.expect("the address was checked")).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let answer = body.ok().and_then(|body| serde_json::from_slice(&body.to_bytes()).ok());
    judge(status, state, &answer.unwrap_or(Value::Null))
}

/// A gateway that is in this state says so. One that is not says why, and what to do.
fn judge(status: StatusCode, state: &str, answer: &Value) -> Result<(), Unhealthy> {
    match (status, answer["detail"].as_str(), answer["hint"].as_str()) {
        (StatusCode::OK, _, _) if answer["status"] == state => Ok(()),
        (StatusCode::SERVICE_UNAVAILABLE, Some(detail), Some(hint)) => {
            Err(Unhealthy::Said(format!("{detail}. {hint}")))
        }
        _ => Err(Unhealthy::Other(status)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for (text, parsed) in [
            ("127.0.0.1:9187", "127.0.0.1:9187"),
            ("http://gateway:8080/", "gateway:8080"),
            ("[::1]:9187", "[::1]:9187"),
        ] {
            assert_eq!(address(text).unwrap(), parsed);
        }
        for text in ["127.0.0.1", "https://gateway:1", "http://gateway:1/health", "ann@gateway:1", ":", ""] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_an_answer_of_a_gateway_counts() {
        let said = |status: u16, answer| {
            judge(StatusCode::from_u16(status).unwrap(), "live", &answer).map_err(|error| error.to_string())
        };
        assert_eq!(said(200, json!({"status": "live"})), Ok(()));
        for (status, answer) in
            [(200, Value::Null), (200, json!({"status": "ready"})), (404, json!({"detail": "no"}))]
        {
            assert!(said(status, answer).unwrap_err().contains("another program"), "{status}");
        }
        let away = said(503, json!({"detail": "the server is away", "hint": "Check the server."}));
        assert_eq!(away.unwrap_err(), "the server is away. Check the server.");
    }
}
