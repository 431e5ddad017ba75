//! Arguments of `health`.

use clap::Args;

#[derive(Clone, Debug, Args)]
pub struct HealthArgs {
    /// Also fail while the agent cannot profile: it may load no program, or is stopping
    #[arg(long)]
    pub ready: bool,
    /// Address of the agent. No token is sent, and its certificate is not checked
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7117")]
    pub url: String,
}
