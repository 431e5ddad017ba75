//! The web UI, embedded in the binary: the only part that is served without a token.

use std::{borrow::Cow, io::Read as _};

use axum::{
    body::Body,
    extract::Path,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use flate2::read::GzDecoder;
use rust_embed::{EmbeddedFile, RustEmbed};

use super::{auth::hex, error::ApiError};

/// Code and styles are there compressed only: who takes no encoding gets them decompressed.
#[derive(RustEmbed)]
#[folder = "$PROFILER_UI_DIST"]
#[exclude = "*.js"]
#[exclude = "*.css"]
#[exclude = "viewer.html"]
struct Files;

/// Names under `assets/` carry a hash of their content.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";
/// The page itself names the assets: it is asked for each time, and answered by 304.
const REVALIDATE: &str = "no-cache";

pub(super) async fn index(headers: HeaderMap) -> Result<Response, ApiError> {
    serve(&find::<Files>, "index.html", REVALIDATE, &headers)
}

pub(super) async fn favicon(headers: HeaderMap) -> Result<Response, ApiError> {
    serve(&find::<Files>, "favicon.ico", REVALIDATE, &headers)
}

pub(super) async fn asset(
    path: Result<Path<String>, axum::extract::rejection::PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Path(name) = path.map_err(|error| ApiError::not_found(error.body_text()))?;
    serve(
        &find::<Files>,
        &format!("assets/{name}"),
        IMMUTABLE,
        &headers,
    )
}

/// The page that shows one profile without an agent, with places for it; `None` when the UI is not
/// part of this build.
pub(crate) fn offline_viewer() -> Option<String> {
    let file = decompressed(&find::<Files>, "viewer.html")?;
    String::from_utf8(file.data.into_owned()).ok()
}

/// A file that is embedded compressed only.
fn decompressed(find: Find<'_>, path: &str) -> Option<EmbeddedFile> {
    let compressed = find(&format!("{path}.gz"))?;
    let mut bytes = Vec::new();
    GzDecoder::new(&*compressed.data)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(EmbeddedFile {
        data: Cow::Owned(bytes),
        metadata: compressed.metadata,
    })
}

fn find<F: RustEmbed>(path: &str) -> Option<EmbeddedFile> {
    F::get(path)
}

/// Where files are looked up.
type Find<'a> = &'a dyn Fn(&str) -> Option<EmbeddedFile>;

fn serve(
    find: Find<'_>,
    path: &str,
    caching: &'static str,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let found = encoded(find, path, headers)
        .or_else(|| Some((find(path).or_else(|| decompressed(find, path))?, None)));
    let (file, encoding) =
        found.ok_or_else(|| ApiError::not_found(format!("there is no file {path}")))?;
    let etag = format!("\"{}\"", hex(&file.metadata.sha256_hash()[..16]));
    let known = headers.get_all(header::IF_NONE_MATCH).iter().any(|given| {
        given.to_str().is_ok_and(|given| {
            given
                .split(',')
                .any(|tag| tag.trim().trim_start_matches("W/") == etag)
        })
    });
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let body = match file.data {
            Cow::Borrowed(bytes) => Body::from(bytes),
            Cow::Owned(bytes) => Body::from(bytes),
        };
        let mut response = Response::new(body);
        let media_type = HeaderValue::from_static(media_type(path));
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, media_type);
        response
    };
    let out = response.headers_mut();
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    out.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        out.insert(header::ETAG, etag);
    }
    if let Some(encoding) = encoding.filter(|_| !known) {
        out.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    Ok(response)
}

/// The compressed sibling of a file, when there is one and the client takes it.
fn encoded(
    find: Find<'_>,
    path: &str,
    headers: &HeaderMap,
) -> Option<(EmbeddedFile, Option<&'static str>)> {
    [("br", "br"), ("gzip", "gz")]
        .into_iter()
        .find_map(|(encoding, suffix)| {
            let file = accepts(headers, encoding).then(|| find(&format!("{path}.{suffix}")))??;
            Some((file, Some(encoding)))
        })
}

/// Whether Accept-Encoding names `encoding` with a weight above zero.
fn accepts(headers: &HeaderMap, encoding: &str) -> bool {
    headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| {
            value.split(',').any(|item| {
                let (name, weight) = item.split_once(';').unwrap_or((item, ""));
                let weight = weight.trim().strip_prefix("q=").map(str::parse::<f32>);
                name.trim().eq_ignore_ascii_case(encoding)
                    && !matches!(weight, Some(Ok(0.0) | Err(_)))
            })
        })
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, suffix)| suffix) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use rust_embed::Metadata;

    use super::*;

    fn file(text: &'static str) -> EmbeddedFile {
        let mut hash = [0; 32];
        hash[..text.len().min(16)].copy_from_slice(&text.as_bytes()[..text.len().min(16)]);
        let metadata = Metadata::__rust_embed_new(hash, None, None);
        EmbeddedFile {
            data: Cow::Borrowed(text.as_bytes()),
            metadata,
        }
    }

    fn files(path: &str) -> Option<EmbeddedFile> {
        match path {
            "assets/a.js" => Some(file("plain")),
            "assets/a.js.br" => Some(file("brotli")),
            "assets/a.js.gz" => Some(file("gzip")),
            "assets/b.css" => Some(file("style")),
            "assets/c.css.gz" => Some(EmbeddedFile {
                data: Cow::Owned(gzip(b"only compressed")),
                ..file("")
            }),
            _ => None,
        }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn who_takes_no_encoding_gets_the_file_as_it_was() {
        let response = serve(&files, "assets/c.css", IMMUTABLE, &HeaderMap::new()).unwrap();
        assert!(response.headers().get(header::CONTENT_ENCODING).is_none());
        assert_eq!(
            response.headers()[header::CONTENT_TYPE],
            "text/css; charset=utf-8"
        );
        let body = axum::body::to_bytes(response.into_body(), 1024).await;
        assert_eq!(body.unwrap(), "only compressed");
    }

    fn check(path: &str, accept: &str, encoding: Option<&str>) {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::ACCEPT_ENCODING,
            HeaderValue::from_str(accept).unwrap(),
        );
        let response = serve(&files, path, IMMUTABLE, &headers).unwrap();
        let given = response.headers().get(header::CONTENT_ENCODING);
        assert_eq!(
            given.map(|value| value.to_str().unwrap()),
            encoding,
            "{path} {accept}"
        );
    }

    #[test]
    fn compressed_siblings_are_chosen_by_what_the_client_takes() {
        check("assets/a.js", "gzip, deflate, br", Some("br"));
        check("assets/a.js", "gzip;q=0.5", Some("gzip"));
        check("assets/a.js", "br;q=0, gzip", Some("gzip"));
        check("assets/a.js", "identity", None);
        check("assets/b.css", "br, gzip", None);
        check("assets/c.css", "gzip", Some("gzip"));
        check("assets/c.css", "br", None);
    }

    #[test]
    fn a_known_file_is_answered_without_body() {
        let first = serve(&files, "assets/a.js", IMMUTABLE, &HeaderMap::new()).unwrap();
        assert_eq!(
            first.headers()[header::CONTENT_TYPE],
            "text/javascript; charset=utf-8"
        );
        assert_eq!(first.headers()[header::CACHE_CONTROL], IMMUTABLE);
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        let second = serve(&files, "assets/a.js", IMMUTABLE, &headers).unwrap();
        assert_eq!(second.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(
            second.headers()[header::ETAG],
            first.headers()[header::ETAG]
        );
    }

    #[test]
    fn the_embedded_page_has_no_inline_code_or_style() {
        let page = Files::get("index.html").unwrap();
        let text = String::from_utf8(page.data.into_owned()).unwrap();
        assert!(
            !text.contains("<style") && !text.contains(" style="),
            "{text}"
        );
        let inline = text
            .match_indices("<script")
            .any(|(at, _)| !text[at..].split('>').next().unwrap_or("").contains(" src="));
        assert!(!inline, "{text}");
    }
}
