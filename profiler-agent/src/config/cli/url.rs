//! Arguments of `url`: those of `serve` that decide where the agent listens and where its tokens are.

use clap::Args;

use super::ServeArgs;

/// Each setting can also be given as for `serve`: in the environment or in the TOML file of `--config`.
#[derive(Clone, Debug, Args)]
pub struct UrlArgs {
    /// Print the address with the token that may only look
    #[arg(long)]
    pub read_only: bool,
    /// Address that the agent listens on [default: 127.0.0.1:7117]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,
    /// Data directory of the agent [default: /var/lib/profiler-agent]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// TOML file with the agent's settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    /// File with the agent's token [default: token in its data directory]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<String>,
    /// File with the agent's read-only token
    #[arg(long, value_name = "FILE")]
    pub read_only_token_file: Option<String>,
    /// The agent answers without a token
    #[arg(long)]
    pub no_auth: bool,
    /// Certificate chain of the agent, PEM
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<String>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<String>,
}

impl UrlArgs {
    /// The agent's command line, as far as it matters here.
    pub fn serve(&self) -> ServeArgs {
        let Self {
            read_only: _,
            listen,
            data_dir,
            config,
            token_file,
            read_only_token_file,
            no_auth,
            tls_cert,
            tls_key,
        } = self.clone();
        ServeArgs {
            listen,
            data_dir,
            config,
            token_file,
            read_only_token_file,
            no_auth,
            tls_cert,
            tls_key,
            ..ServeArgs::default()
        }
    }
}
