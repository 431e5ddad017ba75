//! Arguments about where the agent listens and where its tokens are, which `url` takes as `serve` does.

use clap::Args;
use serde::Serialize;

use super::ServeArgs;

#[derive(Clone, Debug, Default, Args, Serialize)]
pub struct AccessArgs {
    /// Address that the agent listens on; other than loopback needs TLS [default: 127.0.0.1:7117]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,
    /// Where the agent keeps results and the token [default: /var/lib/profiler-agent]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// TOML file with the agent's settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    /// The token is the one in this file (`serve` makes it when missing) instead of a fresh one at each start
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<String>,
    /// The token in this file (`serve` makes it when missing) is taken as well: it may look at everything, and change nothing
    #[arg(long, value_name = "FILE")]
    pub read_only_token_file: Option<String>,
    /// The agent answers without a token; loopback only
    #[arg(long)]
    pub no_auth: bool,
    /// Certificate chain, PEM
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<String>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<String>,
}

/// Each setting can also be given as for `serve`: in the environment or in the TOML file of `--config`.
#[derive(Clone, Debug, Args)]
pub struct UrlArgs {
    /// Print the address with the token that may only look
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub access: AccessArgs,
}

impl UrlArgs {
    /// The agent's command line, as far as it matters here.
    pub fn serve(&self) -> ServeArgs {
        ServeArgs {
            access: self.access.clone(),
            ..ServeArgs::default()
        }
    }
}
