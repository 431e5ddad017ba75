//! Arguments of `import`.

use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// pprof (gzip or plain) or folded stacks
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What the profile is called [default: the file's name]
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
    /// Address of the agent
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7117")]
    pub url: String,
    /// File with the agent's token; none is sent when it does not exist
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/var/lib/profiler-agent/token"
    )]
    pub token_file: PathBuf,
    /// Print the task as JSON instead of its address
    #[arg(long)]
    pub json: bool,
}
