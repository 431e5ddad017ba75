//! Request parts that handlers take, with errors that name the field.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request, rejection::BytesRejection},
    http::header,
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
