//! Request parts that handlers take, with errors that name the field.

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Request, rejection::BytesRejection},
    http::{header, request::Parts},
};
use serde::de::DeserializeOwned;

use super::{error::ApiError, guard::MAX_BODY_BYTES};

/// A JSON body. Unknown and wrong fields are `invalid_field`, broken JSON is `malformed_json`.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let media_type = request.headers().get(header::CONTENT_TYPE);
        let essence = media_type
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.split(';').next())
            .map(|text| text.trim().to_ascii_lowercase());
        if essence.as_deref() != Some("application/json") {
            return Err(ApiError::UnsupportedMediaType);
        }
        let body = Bytes::from_request(request, state)
            .await
            .map_err(|error| match error {
                BytesRejection::FailedToBufferBody(inner)
                    if inner.status() == http::StatusCode::PAYLOAD_TOO_LARGE =>
                {
                    ApiError::BodyTooLarge {
                        limit_bytes: MAX_BODY_BYTES,
                    }
                }
                _ => ApiError::BodyInterrupted,
            })?;
        parse_json(&body).map(Self)
    }
}

fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    // In two steps, so that wrong syntax and wrong content cannot be confused.
    let value: serde_json::Value =
        serde_json::from_slice(body).map_err(|error| ApiError::MalformedJson {
            detail: error.to_string(),
        })?;
    if !value.is_object() {
        return Err(ApiError::invalid_field(
            "body",
            "the request body must be a JSON object",
        ));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let detail = error.inner().to_string();
        ApiError::invalid_field(named_field(&error.path().to_string(), &detail), detail)
    })
}

/// The path of a wrong value, completed by the name in serde's message for a field that is
/// unknown or missing.
fn named_field(path: &str, detail: &str) -> String {
    let path = if path == "." { "" } else { path };
    let named = ["unknown field `", "missing field `"]
        .iter()
        .find_map(|prefix| detail.strip_prefix(prefix)?.split('`').next());
    match named {
        Some(name) if path == name || path.ends_with(&format!(".{name}")) => path.to_owned(),
        Some(name) if path.is_empty() => name.to_owned(),
        Some(name) => format!("{path}.{name}"),
        None if path.is_empty() => "body".to_owned(),
        None => path.to_owned(),
    }
}

/// The query string, where every parameter must be known and have a value that parses.
#[derive(Debug)]
pub(super) struct Query {
    pairs: Vec<(String, String)>,
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let text = parts.uri.query().unwrap_or("");
        let pairs = form_urlencoded::parse(text.as_bytes())
            .into_owned()
            .collect();
        Ok(Self { pairs })
    }
}

impl Query {
    /// Refuses parameters that are not in `known`.
    pub(super) fn only(self, known: &[&str]) -> Result<Self, ApiError> {
        match self
            .pairs
            .iter()
            .find(|(name, _)| !known.contains(&name.as_str()))
        {
            None => Ok(self),
            Some((name, _)) => Err(ApiError::InvalidField {
                field: name.clone(),
                detail: format!("unknown query parameter {name:?}"),
                hint: Some(match known {
                    [] => "this address takes no query parameters".into(),
                    known => format!("known parameters are {}", known.join(", ")),
                }),
            }),
        }
    }

    /// The only value of `name`.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, ApiError> {
        let mut values = self.all(name);
        let first = values.next();
        match values.next() {
            None => Ok(first),
            Some(_) => Err(ApiError::invalid_field(
                name,
                format!("{name} is given more than once"),
            )),
        }
    }

    /// The only value of `name`, parsed; `what` completes "is not ...".
    pub(super) fn parsed<T: std::str::FromStr>(
        &self,
        name: &str,
        what: &str,
    ) -> Result<Option<T>, ApiError> {
        self.text(name)?
            .map(|text| parse(name, text, what))
            .transpose()
    }

    /// Every value of a parameter that may be repeated, parsed.
    pub(super) fn repeated<T: std::str::FromStr>(
        &self,
        name: &str,
        what: &str,
    ) -> Result<Vec<T>, ApiError> {
        self.all(name).map(|text| parse(name, text, what)).collect()
    }

    fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.pairs
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

fn parse<T: std::str::FromStr>(name: &str, text: &str, what: &str) -> Result<T, ApiError> {
    text.parse()
        .map_err(|_| ApiError::invalid_field(name, format!("{name} {text:?} is not {what}")))
}
