//! Who may call: bearer tokens from a file. Which requests are checked stands in `api`.

use std::path::Path;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, ORIGIN};
use axum::middleware::Next;
use axum::response::Response;
use sha2::{Digest, Sha256};

use crate::problem::{Kind, Problem};

/// The tokens that are accepted, as digests: a comparison of digests tells nothing about the tokens.
#[derive(Clone, Debug)]
pub struct Tokens {
    digests: Vec<[u8; 32]>,
}

/// Why there are no tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file can't be read.
    #[error("can't read the tokens in {path}: {error}")]
    Read {
        /// Which file.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// It holds none.
    #[error("{0} holds no token: write one into each line, for example from: openssl rand -hex 32")]
    Empty(String),
    /// A token that can be guessed.
    #[error(
        "line {line} of {path} is shorter than {TOKEN_BYTES_MIN} bytes: take one from: openssl rand -hex 32"
    )]
    Short {
        /// Which file.
        path: String,
        /// Which line.
        line: usize,
    },
}

/// A token of random letters and digits that nobody guesses.
const TOKEN_BYTES_MIN: usize = 16;

impl Tokens {
    /// One token in each line; empty lines count for nothing.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let name = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|error| TokenError::Read { path: name.clone(), error })?;
        let mut digests = Vec::new();
        for (index, token) in text.lines().map(str::trim).enumerate().filter(|(_, token)| !token.is_empty()) {
            if token.len() < TOKEN_BYTES_MIN {
                return Err(TokenError::Short { path: name, line: index + 1 });
            }
            digests.push(Sha256::digest(token.as_bytes()).into());
        }
        if digests.is_empty() { Err(TokenError::Empty(name)) } else { Ok(Tokens { digests }) }
    }

    /// Compares with all of them, byte by byte to the end, however early they differ.
    fn accept(&self, token: &[u8]) -> bool {
        let presented: [u8; 32] = Sha256::digest(token).into();
        let differs =
            |digest: &[u8; 32]| digest.iter().zip(presented).fold(0, |all, (one, other)| all | (one ^ other));
        self.digests.iter().fold(false, |found, digest| found | (std::hint::black_box(differs(digest)) == 0))
    }
}

/// Lets a request pass that has a token, or needs none.
pub async fn check(
    State(tokens): State<Option<Arc<Tokens>>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    match &tokens {
        Some(tokens) => authorize(tokens, request.headers())?,
        // Every page that a browser on this machine shows could send such a request to a loopback address.
        None if request.headers().contains_key(ORIGIN) => {
            let hint = "Name a file with tokens by --http-token-file, and send one.";
            return Err(Problem::new(Kind::ForeignOrigin, "the request comes from a web page", hint));
        }
        None => {}
    }
    Ok(next.run(request).await)
}

fn authorize(tokens: &Tokens, headers: &HeaderMap) -> Result<(), Problem> {
    let hint = "Send the header Authorization: Bearer TOKEN, with a token from the file that --http-token-file names.";
    let Some(header) = headers.get(AUTHORIZATION) else {
        return Err(Problem::new(Kind::Unauthorized, "the request has no Authorization", hint));
    };
    let (scheme, token) = header.as_bytes().split_at(header.len().min("bearer ".len()));
    if scheme.eq_ignore_ascii_case(b"bearer ") && tokens.accept(token.trim_ascii()) {
        return Ok(());
    }
    Err(Problem::new(Kind::Unauthorized, "the token is not one of those that are accepted", hint))
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
    fn files_without_good_tokens_are_refused() {
        assert!(matches!(tokens("\n \n"), Err(TokenError::Empty(_))));
        assert!(matches!(tokens("\nhunter2\n"), Err(TokenError::Short { line: 2, .. })));
        assert!(matches!(Tokens::read(Path::new("/nowhere/tokens")), Err(TokenError::Read { .. })));
    }
}
