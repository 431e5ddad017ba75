//! `url`: prints the address of the agent with its token, for who may read the token's file.

use std::path::Path;

use anyhow::{Context as _, anyhow};

use super::{CliError, support_bundle::token};
use crate::{
    api::{Origin, Token},
    config::{ServeConfig, cli::UrlArgs, resolve_serve},
    terminal::{self, Text},
};

pub fn run(args: &UrlArgs) -> Result<(), CliError> {
    let environment = |name: &str| std::env::var(name).ok();
    let config = resolve_serve(&args.serve(), None, &environment)?;
    if config.listen.port() == 0 {
        return Err(CliError::Config(anyhow!(
            "the agent listens on a port that was free when it started: give the address that it printed with --listen"
        )));
    }
    let file = if args.read_only {
        let file = config.read_only_token.clone().ok_or_else(|| {
            CliError::Config(anyhow!(
                "the agent has no read-only token: give it one, and this command as well, with --read-only-token-file FILE"
            ))
        })?;
        Some(file)
    } else {
        config.auth.token_file(&config.data_dir)
    };
    let token = file.as_deref().map(read).transpose()?;
    Ok(terminal::out(&Text::of(&line(&config, token.as_ref())))?)
}

fn read(path: &Path) -> anyhow::Result<Token> {
    // Printed on a terminal: nothing but what a token has.
    Token::parse(&token(path)?).with_context(|| format!("{} does not hold a token", path.display()))
}

fn line(config: &ServeConfig, token: Option<&Token>) -> String {
    let origin = Origin {
        address: config.listen,
        tls: config.tls.is_some(),
    };
    origin.url(token) + "\n"
}
