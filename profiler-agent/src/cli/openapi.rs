//! `openapi`: prints the OpenAPI document.

use anyhow::{Context, Result};

use super::print;

pub fn run() -> Result<()> {
    print(&crate::api::openapi_json().context("encode the OpenAPI document")?)
}
