//! `openapi`: prints the OpenAPI document.

use anyhow::{Context, Result};

use crate::terminal::{self, Text};

pub fn run() -> Result<()> {
    let document = crate::api::openapi_json().context("decompress the OpenAPI document")?;
    terminal::out(&Text::of_json(&document))
}
