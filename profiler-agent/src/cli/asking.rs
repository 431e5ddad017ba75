//! Commands that ask a running agent: how they do it, and what they say when there is no answer.

use std::{
    io::{ErrorKind, Read as _},
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use profiler_model::printable::printable;
use serde::Deserialize;
use ureq::tls::TlsConfig;

/// What is trusted of the agent that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certificate {
    /// One that this machine trusts.
    Trusted,
    /// Any: nothing secret goes there.
    Any,
}

/// A client that takes an answer of every status, follows nothing, and uses no proxy.
pub(super) fn client(timeout: Duration, certificate: Certificate) -> ureq::Agent {
    let tls = TlsConfig::builder()
        .disable_verification(certificate == Certificate::Any)
        .build();
    ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .max_redirects(0)
        .http_status_as_error(false)
        .proxy(None)
        .user_agent(concat!("profiler-agent/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls)
        .build()
        .into()
}

/// The longest answer of [`get`], and how long it may take.
const MOST_BYTES: u64 = 64 << 20;
const TIMEOUT: Duration = Duration::from_secs(70);

/// What the agent at `url` answers to a GET of a path.
pub(super) fn get(url: &str, path: &str, token: Option<&str>) -> Result<String> {
    get_within(TIMEOUT, url, path, token)
}

/// The same within a time.
pub(super) fn get_within(
    timeout: Duration,
    url: &str,
    path: &str,
    token: Option<&str>,
) -> Result<String> {
    let mut request =
        client(timeout, Certificate::Trusted).get(format!("{}{path}", url.trim_end_matches('/')));
    if let Some(token) = token {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    let mut answer = request.call().map_err(|error| no_answer(&error, url))?;
    let status = answer.status().as_u16();
    let mut text = String::new();
    answer
        .body_mut()
        .as_reader()
        .take(MOST_BYTES)
        .read_to_string(&mut text)
        .context("read the agent's answer")?;
    if status != 200 {
        return Err(refusal(status, text.as_bytes()));
    }
    Ok(text)
}

/// The agent's token; `None` where there is no such file, since agents without tokens have none.
pub(super) fn token_if_any(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("read the token {}", path.display())),
    }
}

/// Why there is no answer of the agent at `url`, and what to do.
pub(super) fn no_answer(error: &ureq::Error, url: &str) -> anyhow::Error {
    use ureq::Error;

    if let Some(error) = of_tls(error) {
        return match error {
            rustls::Error::InvalidCertificate(problem) => anyhow!(
                "the certificate of {url} is not trusted ({problem}): the address must be in it, and this machine must know who signed it"
            ),
            rustls::Error::InvalidMessage(_) => {
                anyhow!("{url} is not a TLS endpoint; use http:// if the agent has no certificate")
            }
            other => anyhow!("no TLS connection to {url}: {other}"),
        };
    }
    let is_plain = url.starts_with("http:");
    match error {
        Error::BadUri(_) | Error::Http(_) => anyhow!(
            "{url:?} is not an address of an agent: write for example http://127.0.0.1:7117, or https:// where it has a certificate"
        ),
        Error::ConnectionFailed => nobody(url),
        Error::HostNotFound => {
            anyhow!("the name in {url} is not known here: give another address with --url")
        }
        Error::Timeout(_) => anyhow!(
            "no answer from {url} in time: is it the agent's address, and does the agent run (see its log)?"
        ),
        Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => nobody(url),
        Error::Io(error) if is_plain && CUT_OFF.contains(&error.kind()) => anyhow!(
            "{url} closed the connection: write https:// if it is an agent with a certificate"
        ),
        Error::Protocol(problem) if is_plain => anyhow!(
            "what listens at {url} does not speak HTTP ({problem}): write https:// if it is an agent with a certificate"
        ),
        other => anyhow!("ask the agent at {url}: {other}; is it running?"),
    }
}

/// What the end of a connection looks like.
const CUT_OFF: [ErrorKind; 3] = [
    ErrorKind::ConnectionReset,
    ErrorKind::UnexpectedEof,
    ErrorKind::BrokenPipe,
];

/// The part of an error that comes from TLS, wherever it is.
fn of_tls(error: &ureq::Error) -> Option<&rustls::Error> {
    match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

fn nobody(url: &str) -> anyhow::Error {
    anyhow!(
        "nothing listens at {url}: is the agent running? `serve` prints where it listens; give that with --url"
    )
}

/// What an agent says is wrong.
#[derive(Debug, Deserialize)]
struct Problem {
    detail: String,
    hint: Option<String>,
}

/// Why the agent did not do what it was asked, from its answer.
pub(super) fn refusal(status: u16, answer: &[u8]) -> anyhow::Error {
    let said = match serde_json::from_slice(answer) {
        Ok(Problem { detail, hint: None }) => detail,
        Ok(Problem {
            detail,
            hint: Some(hint),
        }) => format!("{detail} ({hint})"),
        Err(_) => {
            let start = answer.get(..MOST_SHOWN).unwrap_or(answer);
            let text = String::from_utf8_lossy(start);
            let text = text.trim();
            if text.is_empty() {
                "it gave no reason".to_owned()
            } else {
                text.to_owned()
            }
        }
    };
    anyhow!("the agent answered {status}: {}", printable(&said))
}

/// Bytes of an answer in another form than the agent's.
const MOST_SHOWN: usize = 500;

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{SocketAddr, TcpListener},
    };

    use super::*;

    /// Sends something to each client and closes; or is silent.
    fn peer(says: Option<&'static [u8]>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 1024];
            let _ = stream.read(&mut asked).unwrap();
            match says {
                Some(bytes) => stream.write_all(bytes).unwrap(),
                None => std::thread::sleep(Duration::from_mins(1)),
            }
        });
        address
    }

    fn said(url: &str) -> String {
        let asked = client(Duration::from_millis(500), Certificate::Trusted)
            .get(url)
            .call();
        no_answer(&asked.unwrap_err(), url).to_string()
    }

    #[test]
    fn who_gives_no_answer_is_told_apart() {
        let free = {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap()
        };
        let alert = b"\x15\x03\x03\x00\x02\x02\x16";
        for (url, expected) in [
            (format!("http://{free}/"), "nothing listens at "),
            (
                format!("http://{}/", peer(Some(b""))),
                "write https:// if it is an agent with a certificate",
            ),
            (
                format!("http://{}/", peer(Some(alert))),
                "write https:// if it is an agent with a certificate",
            ),
            (
                format!(
                    "https://{}/",
                    peer(Some(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
                ),
                "use http:// if the agent has no certificate",
            ),
            (format!("http://{}/", peer(None)), "no answer from http://"),
            ("nonsense".to_owned(), "is not an address of an agent"),
            (
                "ftp://127.0.0.1/".to_owned(),
                "is not an address of an agent",
            ),
        ] {
            let said = said(&url);
            assert!(said.contains(expected), "{url}: {said}");
        }
    }

    #[test]
    fn a_refusal_is_said_in_words() {
        let problem = br#"{"detail":"no task 7","hint":"see the list","code":"x"}"#;
        assert_eq!(
            refusal(404, problem).to_string(),
            "the agent answered 404: no task 7 (see the list)"
        );
        let page = b"<html>\x1b[31m";
        assert_eq!(
            refusal(502, page).to_string(),
            "the agent answered 502: <html>\\x1b[31m"
        );
        assert_eq!(
            refusal(500, b"").to_string(),
            "the agent answered 500: it gave no reason"
        );
    }
}
