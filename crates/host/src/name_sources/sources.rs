//! Runs the sources: on one thread that has given up its capabilities.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use profiler_model::NamedBy;
use profiler_sandbox::{
    broker::keep_none,
    confine::{Reach, confine_reader},
};
use tokio::{runtime::Handle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    cri, docker,
    kubernetes::{Cluster, KubernetesMode},
    socket::{RuntimeMode, RuntimeSocket, Speaks, elsewhere},
};
use crate::{
    container_names::{ContainerDirectory, SourceState},
    process::ProcessTable,
};

/// Time between two looks for containers without a name.
const LOOK: Duration = Duration::from_secs(1);
/// A container that no source could name is asked for again after this.
const AGAIN: Duration = Duration::from_secs(10);
/// Names are read again after this in any case: Docker's containers can be renamed.
const WHOLE: Duration = Duration::from_secs(30);
/// Sockets that do not exist yet are looked for again after this.
const SEARCH: Duration = Duration::from_secs(30);
/// Longest time for one answer.
const LIMIT: Duration = Duration::from_secs(10);
/// The same for commands, whose users wait.
const COMMAND_LIMIT: Duration = Duration::from_secs(4);

/// The sources to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceConfig {
    pub kubernetes: KubernetesMode,
    pub runtime: RuntimeMode,
    /// Whose pods Kubernetes is asked for.
    pub node_name: Option<String>,
}

/// The running sources; they end with the agent.
#[derive(Debug)]
pub struct NameSources {
    thread: Option<thread::JoinHandle<()>>,
    stop: CancellationToken,
}

impl NameSources {
    /// Starts them. Needs a tokio runtime, whose threads open what this one may not.
    pub fn start(config: SourceConfig, table: ProcessTable) -> io::Result<Self> {
        let broker = Handle::current();
        let stop = CancellationToken::new();
        let ended = stop.clone();
        let thread = thread::Builder::new()
            .name("names".to_owned())
            .spawn(move || {
                let reach = Reach::Servers(config.kubernetes.files());
                let given_up =
                    keep_none().and_then(|()| confine_reader(&reach).map_err(io::Error::other));
                if let Err(error) = given_up {
                    // It reads what others send.
                    tracing::error!(%error, "names of containers are not asked for");
                    return;
                }
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .thread_name("names")
                    .enable_all()
                    .build();
                let runtime = match runtime {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        tracing::error!(%error, "names of containers are not asked for");
                        return;
                    }
                };
                runtime.block_on(async {
                    tokio::select! {
                        () = ended.cancelled() => {}
                        () = run(&config, &table, &broker) => {}
                    }
                });
                runtime.shutdown_background();
            })?;
        Ok(Self {
            thread: Some(thread),
            stop,
        })
    }
}

impl Drop for NameSources {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that names containers panicked");
        }
    }
}

async fn run(config: &SourceConfig, table: &ProcessTable, broker: &Handle) {
    let directory = table.names();
    tokio::join!(
        watch_pods(config, directory),
        follow(config, Speaks::Cri, table, broker),
        follow(config, Speaks::Docker, table, broker),
    );
}

async fn watch_pods(config: &SourceConfig, directory: &ContainerDirectory) {
    match Cluster::find(&config.kubernetes, config.node_name.as_deref()).await {
        Ok(cluster) => cluster.watch(directory).await,
        Err(reason) => {
            directory.set_state(NamedBy::Kubernetes, SourceState::Off { reason }, None);
        }
    }
}

/// Asks runtimes whenever there is an unnamed container, and now and then.
async fn follow(config: &SourceConfig, speaks: Speaks, table: &ProcessTable, broker: &Handle) {
    let directory = table.names();
    let by = source(speaks);
    let mut asked: HashMap<String, Instant> = HashMap::new();
    let mut whole: Option<Instant> = None;
    loop {
        let (mode, processes) = (config.runtime.clone(), table.clone());
        let found = elsewhere(broker, move || mode.sockets(speaks, &processes)).await;
        let sockets = match found.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(sockets) => sockets,
            Err(reason) => {
                directory.set_state(by, SourceState::Off { reason }, None);
                if config.runtime == RuntimeMode::Off {
                    return;
                }
                tokio::time::sleep(SEARCH).await;
                continue;
            }
        };
        let unnamed = unnamed(table, directory);
        asked.retain(|id, at| unnamed.contains(id) && at.elapsed() < AGAIN);
        let is_due = unnamed.iter().any(|id| !asked.contains_key(id))
            || whole.is_none_or(|at| at.elapsed() >= WHOLE);
        if is_due {
            ask(&sockets, directory, broker, LIMIT).await;
            let now = Instant::now();
            asked.extend(unnamed.into_iter().map(|id| (id, now)));
            whole = Some(now);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn source(speaks: Speaks) -> NamedBy {
    match speaks {
        Speaks::Cri => NamedBy::Cri,
        Speaks::Docker => NamedBy::Docker,
    }
}

/// Containers with processes that have no name of their own yet.
fn unnamed(table: &ProcessTable, directory: &ContainerDirectory) -> HashSet<String> {
    table
        .snapshot()
        .iter()
        .filter_map(|process| process.container.as_ref())
        .filter(|container| !directory.has(&container.id))
        .map(|container| container.id.clone())
        .collect()
}

/// Asks all sockets of one kind and says how that went.
async fn ask(
    sockets: &[RuntimeSocket],
    directory: &ContainerDirectory,
    broker: &Handle,
    limit: Duration,
) {
    let Some(first) = sockets.first() else { return };
    let by = source(first.speaks);
    let (mut pods, mut named) = (Vec::new(), Vec::new());
    let mut errors = Vec::new();
    for RuntimeSocket { path, speaks } in sockets {
        let asked = async {
            match speaks {
                Speaks::Cri => cri::list(path, broker).await,
                Speaks::Docker => docker::list(path, broker)
                    .await
                    .map(|named| (Vec::new(), named)),
            }
        };
        let answer = timeout(limit, asked)
            .await
            .unwrap_or_else(|_elapsed| Err(format!("no answer within {} s", limit.as_secs())));
        match answer {
            Ok((more_pods, more_named)) => {
                pods.extend(more_pods);
                named.extend(more_named);
            }
            Err(error) => errors.push(format!("{}: {error}", path.display())),
        }
    }
    let is_all = errors.is_empty();
    directory.learn(by, pods, named, is_all);
    let endpoints: Vec<String> = sockets
        .iter()
        .map(|socket| socket.path.display().to_string())
        .collect();
    let state = if is_all {
        SourceState::Connected
    } else {
        SourceState::Waiting {
            reason: errors.join("; "),
        }
    };
    directory.set_state(by, state, Some(&endpoints.join(", ")));
}

/// Asks all sources once, for a command that runs without a server. What they report about themselves is in
/// [`ContainerDirectory::sources`].
pub async fn load_once(config: SourceConfig, table: &ProcessTable) {
    // Runtimes are found by their processes, too.
    table.refresh();
    let directory = Arc::new(table.names().clone());
    let broker = Handle::current();
    let kubernetes = async {
        let asked = async {
            let cluster = Cluster::find(&config.kubernetes, config.node_name.as_deref())
                .await
                .map_err(|reason| SourceState::Off { reason })?;
            let listed = cluster.list(&directory).await;
            listed.map_err(|reason| SourceState::Waiting { reason })
        };
        let answer = timeout(COMMAND_LIMIT, asked)
            .await
            .unwrap_or_else(|_elapsed| {
                Err(SourceState::Waiting {
                    reason: format!("no answer within {} s", COMMAND_LIMIT.as_secs()),
                })
            });
        if let Err(state) = answer {
            directory.set_state(NamedBy::Kubernetes, state, None);
        }
    };
    let runtime = |speaks: Speaks| {
        let (config, directory, broker) = (&config, &directory, &broker);
        async move {
            match config.runtime.sockets(speaks, table) {
                Ok(sockets) => ask(&sockets, directory, broker, COMMAND_LIMIT).await,
                Err(reason) => {
                    directory.set_state(source(speaks), SourceState::Off { reason }, None);
                }
            }
        }
    };
    tokio::join!(kubernetes, runtime(Speaks::Cri), runtime(Speaks::Docker));
}
