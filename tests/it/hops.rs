//! The three hops of the demo mesh: app, sidecar, sidecar, app.

use profiler_tests::{
    mesh::{App, Load, Mesh, MeshOptions, Upstream, load_report},
    peers::{
        asked::Asked,
        grpc::{MISSING, ROUND},
        held::wait_until_probed,
        watch::{Edges, Expected, Watch},
    },
};

use crate::targets::EXIT;

/// Requests that go through the mesh, and over how many connections.
pub(crate) const REQUESTS: u32 = 400;
pub(crate) const CONNECTIONS: u32 = 8;

/// Checks that each request is reported once on each hop, as what it was.
pub(crate) fn check(options: &MeshOptions) {
    let mesh = Mesh::up(options).unwrap();
    let report = mesh.report();
    let [out, inward, app] = [
        report.client_envoy_pid,
        report.server_envoy_pid,
        report.server_pid,
    ];
    // Sidecars put several frames into one call of HTTP/2.
    let mut arguments = vec!["--capture-bytes=16320"];
    if options.mtls {
        arguments.push("--tls");
    }
    let watch = Watch::start_with(&[out, inward, app], &arguments).unwrap();
    if options.mtls {
        // On a busy machine the agent begins before it has looked at programs as large as these.
        for pid in [out, inward] {
            wait_until_probed(pid).unwrap();
        }
    }
    let (client, asked) = ask(&mesh, options);
    assert_eq!(asked.len(), REQUESTS as usize);
    let seen = watch.finish().unwrap();
    let (own, between) = match (options.app, options.upstream) {
        (App::Http1, Upstream::Http1) => ("http1", "http1"),
        (App::Http1, Upstream::Http2) => ("http1", "http2"),
        (App::Grpc, _) => ("grpc", "grpc"),
    };
    let hops = [
        (client, out, own, false),
        (out, inward, between, options.mtls),
        (inward, app, own, false),
    ];
    for (from, to, protocol, tls) in hops {
        let expected = Expected {
            protocol,
            tls,
            edges: Edges::Between(from, to),
            clients: &[from],
            servers: &[to],
            asked: &asked,
        };
        seen.check(&expected)
            .unwrap_or_else(|error| panic!("{from} to {to}: {error:#}"));
    }
}

/// The client's pid and what it asked.
fn ask(mesh: &Mesh, options: &MeshOptions) -> (u32, Vec<Asked>) {
    match options.app {
        App::Http1 => {
            let load = Load::new(REQUESTS.into(), CONNECTIONS);
            let load = mesh.start_other_load(load).unwrap();
            let client = load.pid();
            let done = load_report(&load.finish(EXIT).unwrap()).unwrap();
            assert_eq!((done.requests, done.errors), (REQUESTS.into(), 0));
            let one = Asked::new("GET", "/work", "200").sizes(0, options.body_bytes.into());
            (client, vec![one; REQUESTS as usize])
        }
        App::Grpc => {
            let rounds = REQUESTS / ROUND / CONNECTIONS;
            let mut done = mesh.call_grpc(rounds, CONNECTIONS).unwrap();
            // What is not there is refused at once, and a sidecar that is still to send the message then
            // resets the stream.
            for one in done.asked.iter_mut().filter(|one| one.path == MISSING) {
                one.sizes_may_be_unknown = true;
            }
            (done.pid, done.asked)
        }
    }
}
