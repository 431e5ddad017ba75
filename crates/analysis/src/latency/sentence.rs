//! How long requests take and where, in one sentence.

use profiler_model::{
    latency::{
        Latency, LatencyActivity, LatencyActivityKind as Kind, LatencyPart, LatencyPlace,
        LatencyProcess,
    },
    percent,
    printable::{printable, printable_within},
    short_time,
};

/// Columns of a name.
pub(crate) const NAME_COLUMNS: usize = 40;
/// Parts below this share of the mean are left out, but for the two largest.
const MENTIONED_PERCENT: f64 = 5.0;
/// Of the time in a process, what takes a smaller share is not mentioned.
const ACTIVITY_PERCENT: f64 = 30.0;
/// A wait that is shorter accuses nobody.
const LEAST_WAIT_NS: u64 = 1_000_000;
/// A part from this share of the mean on whose process was not recorded is said to be unknown inside.
const UNKNOWN_PERCENT: f64 = 30.0;
const UNSEEN: &str = "what it did is not known: its sockets were not recorded";
/// Below this, segments that were sent again are not mentioned.
const RETRANSMIT_PERCENT: f64 = 0.5;

/// What else is known where a sentence with causes is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    /// Why what a process did is not known.
    pub(crate) unknown: &'a [(LatencyProcess, &'static str)],
    /// Of what the process and the one behind it sent each other.
    pub(crate) retransmit_percent: Option<f64>,
}

/// The sentence of a latency whose processes were recorded, with what they did.
pub(crate) fn with_causes(latency: &Latency, known: &Known<'_>) -> String {
    text(latency, Some(known))
}

pub(super) fn sentence(latency: &Latency) -> String {
    text(latency, None)
}

fn text(latency: &Latency, known: Option<&Known<'_>>) -> String {
    let Latency {
        process,
        mean_ns,
        p95_ns,
        parts,
        ..
    } = latency;
    let pid = process
        .pid
        .map_or_else(String::new, |pid| format!(" ({pid})"));
    let begin = format!(
        "Requests to {}{pid} take {} on average (p95 {})",
        who(process),
        short_time(*mean_ns),
        short_time(*p95_ns),
    );
    if let [only] = parts.as_slice()
        && only.place == LatencyPlace::Server
    {
        let causes =
            known.and_then(|known| causes(latency, known, process, *mean_ns, Role::Server));
        return match causes {
            Some(causes) => format!("{begin}: {causes}."),
            None => format!("{begin}."),
        };
    }
    let sum = |is_meant: fn(LatencyPlace) -> bool| -> u64 {
        let meant = parts.iter().filter(|part| is_meant(part.place));
        meant.map(|part| part.mean_ns).sum()
    };
    let own_ns = sum(LatencyPlace::is_own);
    let unread_ns = sum(LatencyPlace::is_queue);
    let unread = (percent(unread_ns, own_ns) >= ACTIVITY_PERCENT)
        .then(|| format!("{} of it unread in its sockets", short_time(unread_ns)));
    let did = known.and_then(|known| causes(latency, known, process, own_ns, Role::Sidecar));
    let causes: Vec<String> = unread.into_iter().chain(did).collect();
    let mut places = vec![Place {
        mean_ns: own_ns,
        text: format!("in {}", who(process)),
        causes: (!causes.is_empty()).then(|| causes.join(", ")),
    }];
    let others = parts.iter().filter(|part| !part.place.is_own());
    places.extend(others.map(|part| place(latency, part, known)));
    places.sort_by_key(|place| std::cmp::Reverse(place.mean_ns));
    let mentioned: Vec<String> = places
        .into_iter()
        .enumerate()
        .filter(|(index, place)| {
            place.mean_ns > 0
                && (*index < 2 || percent(place.mean_ns, *mean_ns) >= MENTIONED_PERCENT)
        })
        .map(|(_, place)| place.text())
        .collect();
    format!("{begin}: {}.", mentioned.join(", "))
}

/// One place on the way, as the sentence names it.
struct Place {
    mean_ns: u64,
    text: String,
    causes: Option<String>,
}

impl Place {
    fn text(self) -> String {
        let Self {
            mean_ns,
            text,
            causes,
        } = self;
        let causes = causes.map_or_else(String::new, |causes| format!(" ({causes})"));
        format!("{} {text}{causes}", short_time(mean_ns))
    }
}

/// Whose time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Sidecar,
    Server,
}

fn place(latency: &Latency, part: &LatencyPart, known: Option<&Known<'_>>) -> Place {
    let mean_ns = part.mean_ns;
    let (text, causes) = match (part.place, &part.process) {
        (LatencyPlace::Server, Some(server)) => {
            let text = format!("in {}", behind(latency, server));
            let causes =
                known.and_then(|known| causes(latency, known, server, mean_ns, Role::Server));
            (text, causes)
        }
        (LatencyPlace::Server, None) => ("in what it asks".to_owned(), None),
        (LatencyPlace::Upstream, server) => {
            let asked = server.as_ref().map_or_else(
                || "what it asks".to_owned(),
                |server| behind(latency, server),
            );
            let text = format!("until {asked} responds, the network included");
            let is_large = percent(mean_ns, latency.mean_ns) >= UNKNOWN_PERCENT;
            let unknown = || is_large.then(|| UNSEEN.to_owned());
            let causes = known.and_then(|known| retransmitted(known).or_else(unknown));
            (text, causes)
        }
        (LatencyPlace::ResponseBody, _) => ("until the response has ended".to_owned(), None),
        _ => {
            let text = "in the network and in sockets between the two".to_owned();
            (text, known.and_then(retransmitted))
        }
    };
    Place {
        mean_ns,
        text,
        causes,
    }
}

/// The process behind a sidecar; a sidecar may ask a sidecar.
fn behind(latency: &Latency, server: &LatencyProcess) -> String {
    if server.name == latency.process.name {
        format!("the {} behind it", who(server))
    } else {
        who(server)
    }
}

fn retransmitted(known: &Known<'_>) -> Option<String> {
    let percent = known.retransmit_percent?;
    (percent >= RETRANSMIT_PERCENT)
        .then(|| format!("{percent:.1} % of the segments were retransmitted"))
}

/// What a process did most while it had the requests; `None` where nothing is to be said.
fn causes(
    latency: &Latency,
    known: &Known<'_>,
    process: &LatencyProcess,
    mean_ns: u64,
    role: Role,
) -> Option<String> {
    let mut inside = latency.inside.iter();
    let Some(inside) = inside.find(|inside| inside.process == *process) else {
        if percent(mean_ns, latency.mean_ns) < UNKNOWN_PERCENT {
            return None;
        }
        let mut unknown = known.unknown.iter();
        let (_, why) = unknown.find(|(unknown, _)| unknown == process)?;
        return Some(format!("what it did is not known: {why}"));
    };
    let mentioned: Vec<String> = inside
        .activities
        .iter()
        .filter(|activity| {
            let matters = activity.kind == Kind::Running || activity.mean_ns >= LEAST_WAIT_NS;
            matters && activity.share_percent >= ACTIVITY_PERCENT
        })
        .map(|activity| words(activity, role))
        .collect();
    (!mentioned.is_empty()).then(|| mentioned.join(", "))
}

fn words(activity: &LatencyActivity, role: Role) -> String {
    let what = activity.what.as_deref().map(printable);
    let title = activity.kind.title();
    let time = short_time(activity.mean_ns);
    match (activity.kind, what) {
        (Kind::Running, Some(what)) => {
            let what = printable_within(&what, NAME_COLUMNS);
            let part = short_time(activity.what_ns.unwrap_or(0));
            format!("{title} {time}, {part} of it {what}")
        }
        (Kind::WaitingForCpu, Some(what)) => {
            // `what` has the name of a process, which is cut already.
            let part = activity
                .what_ns
                .map_or_else(String::new, |ns| format!("{} ", short_time(ns)));
            format!("{title} {time}, {part}{what}")
        }
        (Kind::OwnRequests, Some(what)) => {
            let what = printable_within(&what, NAME_COLUMNS);
            format!("waiting for {what} at most {time}")
        }
        (Kind::Suspended, Some(what)) if role == Role::Sidecar => format!("held {time}, {what}"),
        (_, Some(what)) => format!("{title} {time}, {what}"),
        (_, None) => format!("{title} {time}"),
    }
}

fn who(process: &LatencyProcess) -> String {
    printable_within(&process.name, NAME_COLUMNS)
}
