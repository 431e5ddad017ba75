//! `top`: how the pods of this machine do.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use profiler_analysis::render::overview_table;
use profiler_engine::overview::{OverviewConfig, OverviewWatch};
use profiler_model::overview::Overview;
use tokio::sync::mpsc::{Receiver, channel};

use super::{Signals, naming::named_table};
use crate::{
    config::cli::TopArgs,
    terminal::{self, Redrawn, Text},
};

pub fn run(args: &TopArgs) -> Result<()> {
    let table = named_table(&args.names)?;
    let period = Duration::from_secs(args.interval);
    let config = OverviewConfig {
        period,
        // Envoy brings its times up to date every five seconds.
        first: period,
        asks_envoys: args.envoy_admin.asks(),
    };
    // One that is not shown yet is left out for the next.
    let (tell, told) = channel(1);
    let watch = OverviewWatch::start(table, config, move |overview| {
        drop(tell.try_send(Arc::clone(overview)));
    })
    .context("start the thread that reads")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let shown = runtime.block_on(show(args, told));
    drop(watch);
    shown
}

async fn show(args: &TopArgs, mut told: Receiver<Arc<Overview>>) -> Result<()> {
    let mut signals = Signals::new()?;
    let redraws = terminal::out_is_terminal() && terminal::err_is_terminal() && !args.json;
    let count = args.count.unwrap_or(if redraws { u64::MAX } else { 1 });
    let mut screen = Redrawn::default();
    let mut shown = 0;
    while shown < count {
        let overview = tokio::select! {
            overview = told.recv() => overview.context("the thread that reads has ended")?,
            () = signals.next() => return Ok(()),
        };
        // Rates are between two readings.
        if overview.rows.iter().all(|row| row.window_s.is_none()) {
            continue;
        }
        shown += 1;
        if args.json {
            let line = serde_json::to_string(&*overview).context("encode the overview")?;
            terminal::out(&Text::of_json(&line))?;
            continue;
        }
        let rows = usize::try_from(args.rows).unwrap_or(usize::MAX);
        let text = overview_table(&overview, rows);
        if redraws {
            screen.show(&text);
        } else {
            terminal::out(&text)?;
        }
    }
    Ok(())
}
