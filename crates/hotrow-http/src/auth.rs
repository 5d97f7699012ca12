//! Access: clients with a bearer token from a file. Without a file, programs on this machine, but no web pages in a browser on
//! this machine. `api` decides which requests are checked.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::Response;
use sha2::{Digest, Sha256};

use crate::problem::{Kind, Problem};

/// The accepted tokens, as digests. The time that a comparison of digests takes tells nothing about the tokens.
#[derive(Clone, Debug)]
pub struct Tokens {
    digests: Vec<([u8; 32], Access)>,
}

/// The requests that a client can send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// All.
    Full,
    /// Those that change nothing: GET and HEAD.
    ReadOnly,
}

/// Before a token in the file: the token is for requests that change nothing.
const READ_ONLY: &str = "read-only ";

/// The reason why the tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the tokens in {path}: {error}")]
    Read {
        /// The path of the file.
        path: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The file contains no token.
    #[error("{0} contains no token: write one per line, for example from: openssl rand -hex 32")]
    Empty(String),
    /// A token that could be guessed.
    #[error(
        "line {line} of {path} is shorter than {TOKEN_BYTES_MIN} bytes: use a token from: openssl rand -hex 32"
    )]
    Short {
        /// The path of the file.
        path: String,
        /// The number of the line.
        line: usize,
    },
}

/// A token of so many random letters and digits cannot be guessed.
const TOKEN_BYTES_MIN: usize = 16;

impl Tokens {
    /// Reads one token per line, after `read-only ` if it is for reading. Empty lines are ignored.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let name = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|error| TokenError::Read { path: name.clone(), error })?;
        let mut digests = Vec::new();
        for (index, token) in text.lines().map(str::trim).enumerate().filter(|(_, token)| !token.is_empty()) {
            let (token, access) = match token.strip_prefix(READ_ONLY) {
                Some(token) => (token.trim_start(), Access::ReadOnly),
                None => (token, Access::Full),
            };
            if token.len() < TOKEN_BYTES_MIN {
                return Err(TokenError::Short { path: name, line: index + 1 });
            }
            digests.push((Sha256::digest(token.as_bytes()).into(), access));
        }
        if digests.is_empty() { Err(TokenError::Empty(name)) } else { Ok(Tokens { digests }) }
    }

    /// Compares with all tokens, each byte by byte to the end, wherever they differ.
    fn accept(&self, token: &[u8]) -> Option<Access> {
        let presented: [u8; 32] = Sha256::digest(token).into();
        let differs =
            |digest: &[u8; 32]| digest.iter().zip(presented).fold(0, |all, (one, other)| all | (one ^ other));
        let equal = |digest: &[u8; 32]| std::hint::black_box(differs(digest)) == 0;
        self.digests.iter().fold(None, |found, (digest, access)| equal(digest).then_some(*access).or(found))
    }
}

/// The tokens that are accepted; none if there is no file of tokens.
type Accepted = State<Option<Arc<Tokens>>>;

/// Passes a request that has a token, or needs none. The request then carries its [`Access`].
pub async fn check(tokens: Accepted, mut request: Request, next: Next) -> Result<Response, Problem> {
    let access = match &*tokens {
        Some(tokens) => authorize(tokens, request.headers())?,
        None => {
            refuse_other_hosts(&request)?;
            refuse_web_pages(request.headers())?;
            Access::Full
        }
    };
    if access == Access::ReadOnly && !request.method().is_safe() {
        let detail = format!("the token is for reading, and the request is a {}", request.method());
        return Err(Problem::new(Kind::ReadOnly, detail, WITH_A_FULL_TOKEN));
    }
    request.extensions_mut().insert(access);
    Ok(next.run(request).await)
}

/// Passes a request for the page, to which other sites may link.
pub async fn check_host(tokens: Accepted, request: Request, next: Next) -> Result<Response, Problem> {
    if tokens.is_none() {
        refuse_other_hosts(&request)?;
    }
    Ok(next.run(request).await)
}

const WITH_A_FULL_TOKEN: &str =
    "Send a token whose line in the file of --http-token-file does not begin with read-only.";
const WITH_A_TOKEN: &str = "Set --http-token-file to a file with tokens, and send a token.";

/// Any page that a browser on this machine shows can send requests to a loopback address. Browsers send the page's origin, but
/// not with every GET. Newer browsers also report whether the page is of the same site. A page of the same origin is the
/// operations page: `refuse_other_hosts` has checked that the host is this machine.
fn refuse_web_pages(headers: &HeaderMap) -> Result<(), Problem> {
    let is_foreign = |site: &[u8]| !matches!(site, b"same-origin" | b"none");
    let sites = headers.get_all("sec-fetch-site");
    let is_own = sites.iter().next().is_some_and(|site| site == "same-origin")
        && headers.get_all(ORIGIN).iter().all(|origin| is_of(origin.as_bytes(), headers));
    if (headers.contains_key(ORIGIN) && !is_own) || sites.iter().any(|site| is_foreign(site.as_bytes())) {
        let detail = "the request comes from a web page";
        return Err(Problem::new(Kind::ForeignOrigin, detail, WITH_A_TOKEN));
    }
    Ok(())
}

/// Whether this is the origin of the host that the request names.
fn is_of(origin: &[u8], headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).map(|host| host.as_bytes());
    origin.strip_prefix(b"http://").is_some_and(|origin| Some(origin) == host)
}

/// If a page's own host name resolves to a loopback address (DNS rebinding), the browser takes the API for the same site. The
/// request still contains that host name.
fn refuse_other_hosts(request: &Request) -> Result<(), Problem> {
    let in_headers = request.headers().get_all(HOST).iter();
    let in_headers = in_headers.map(|host| Authority::try_from(host.as_bytes()).ok());
    let mut hosts =
        request.uri().authority().map(|host| Some(host.clone())).into_iter().chain(in_headers).peekable();
    let is_named = hosts.peek().is_some();
    if is_named && hosts.all(|host| host.as_ref().is_some_and(is_this_machine)) {
        return Ok(());
    }
    let detail = "the request's Host is not localhost or a loopback address, so a web page may have sent it";
    Err(Problem::new(Kind::ForeignOrigin, detail, WITH_A_TOKEN))
}

fn is_this_machine(authority: &Authority) -> bool {
    let host = authority.host();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    !authority.as_str().contains('@')
        && (host.eq_ignore_ascii_case("localhost")
            || address.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback()))
}

fn authorize(tokens: &Tokens, headers: &HeaderMap) -> Result<Access, Problem> {
    let hint =
        "Send the header Authorization: Bearer TOKEN, with a token from the file of --http-token-file.";
    let Some(header) = headers.get(AUTHORIZATION) else {
        return Err(Problem::new(Kind::Unauthorized, "the request has no Authorization header", hint));
    };
    let (scheme, token) = header.as_bytes().split_at(header.len().min("bearer ".len()));
    if scheme.eq_ignore_ascii_case(b"bearer ")
        && let Some(access) = tokens.accept(token.trim_ascii())
    {
        return Ok(access);
    }
    Err(Problem::new(Kind::Unauthorized, "the token is not valid", hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Tokens, TokenError> {
        let name = format!("hotrow-tokens-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        let tokens = Tokens::read(&path);
        std::fs::remove_file(&path).unwrap();
        tokens
    }

    fn accepts(tokens: &Tokens, header: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, header.parse().unwrap());
        authorize(tokens, &headers).is_ok()
    }

    #[test]
    fn each_line_is_a_token() {
        let tokens = tokens("first-token-0123456789\n\n  second-token-0123456789 \r\n").unwrap();
        assert!(accepts(&tokens, "Bearer first-token-0123456789"));
        assert!(accepts(&tokens, "bearer second-token-0123456789"));
        for wrong in [
            "Bearer first-token-012345678",
            "Bearer ",
            "Bearer",
            "first-token-0123456789",
            "Basic first-token-0123456789",
        ] {
            assert!(!accepts(&tokens, wrong), "{wrong}");
        }
        assert!(authorize(&tokens, &HeaderMap::new()).is_err());
    }

    #[test]
    fn a_token_for_reading_is_recognised() {
        let tokens = tokens("read-only  reader-token-0123456789\nfull-token-0123456789\n").unwrap();
        assert_eq!(tokens.accept(b"reader-token-0123456789"), Some(Access::ReadOnly));
        assert_eq!(tokens.accept(b"full-token-0123456789"), Some(Access::Full));
        assert_eq!(tokens.accept(b"read-only  reader-token-0123456789"), None);
    }

    #[test]
    fn the_own_page_can_send_requests_with_its_origin() {
        let read = |headers: &[(&'static str, &str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, value.parse().unwrap());
            }
            refuse_web_pages(&map).is_ok()
        };
        let host = ("host", "127.0.0.1:8080");
        let (own, same) = (("origin", "http://127.0.0.1:8080"), ("sec-fetch-site", "same-origin"));
        assert!(read(&[host, own, same]));
        assert!(!read(&[host, own]), "an old browser does not say that the page is of the same site");
        assert!(!read(&[host, ("origin", "http://127.0.0.1:3000"), ("sec-fetch-site", "same-site")]));
        assert!(!read(&[host, ("origin", "http://127.0.0.1:3000"), same]));
        assert!(!read(&[host, own, ("origin", "http://evil.example"), same]));
        assert!(!read(&[host, own, ("sec-fetch-site", "none")]));
    }

    #[test]
    fn only_names_of_this_machine_are_hosts() {
        let request = |uri: &str, hosts: &[&str]| {
            let mut request = Request::builder().uri(uri);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            refuse_other_hosts(&request.body(axum::body::Body::empty()).unwrap()).is_ok()
        };
        for host in
            ["localhost", "LocalHost:8080", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080", "[::ffff:127.0.0.1]"]
        {
            assert!(request("/", &[host]), "{host}");
            assert!(request(&format!("http://{host}/"), &[]), "{host}");
        }
        for host in [
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "0.0.0.0",
            "localhost@evil.example",
            "evil@localhost",
            "",
            "[::2]",
        ] {
            assert!(!request("/", &[host]), "{host}");
        }
        assert!(!request("/", &[]), "a request without Host");
        assert!(!request("/", &["localhost", "evil.example"]));
        assert!(!request("http://evil.example/", &["localhost"]));
    }

    #[test]
    fn the_origin_that_a_browser_reports_is_trusted() {
        let read = |header: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header, value.parse().unwrap());
            refuse_web_pages(&headers).is_ok()
        };
        assert!(read("sec-fetch-site", "same-origin") && read("sec-fetch-site", "none"));
        assert!(!read("sec-fetch-site", "cross-site") && !read("sec-fetch-site", "same-site"));
        assert!(!read("origin", "null"));
        assert!(refuse_web_pages(&HeaderMap::new()).is_ok());
    }

    #[test]
    fn files_without_good_tokens_are_refused() {
        assert!(matches!(tokens("\n \n"), Err(TokenError::Empty(_))));
        assert!(matches!(tokens("\nhunter2\n"), Err(TokenError::Short { line: 2, .. })));
        assert!(matches!(tokens("read-only hunter2\n"), Err(TokenError::Short { line: 1, .. })));
        assert!(matches!(Tokens::read(Path::new("/nowhere/tokens")), Err(TokenError::Read { .. })));
    }
}
