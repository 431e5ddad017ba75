//! What may leave a decoder.

/// What users asked to see. By default nothing that could be a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privacy {
    /// Keep the path as it was sent, with its query string masked all the same.
    pub raw_paths: bool,
    /// Names of headers, in lower case, whose values are never kept, beside those that never are.
    pub redacted_headers: Vec<String>,
    /// Names of headers, in lower case, that are kept beside the usual ones.
    pub kept_headers: Vec<String>,
    /// First bytes of each body of HTTP that are kept, as they were sent.
    pub body_bytes: usize,
}
