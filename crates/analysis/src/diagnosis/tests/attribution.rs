//! Where stacks belong, by exact names, by inferred names and by names of threads.

use super::{Sample, attributed, check, embedded};

/// What is on every stack of a worker, from the leaf's side on.
const LOOP: [&str; 3] = [
    "i:Envoy::Event::DispatcherImpl::createFileEvent(int)::$_0 [std::function vslot 6]",
    "envoy+0x5b4fcf2",
    "i:source/server/worker_impl.cc",
];
const MANAGER: [&str; 3] = [
    "i:source/common/http/filter_manager.cc",
    "i:Envoy::Http::ConnectionManagerImpl::ActiveStream [vslot 10]",
    "i:Envoy::Http::Http1::ServerConnectionImpl [vslot 11]",
];

fn stack<'a>(leaf: &[&'a str], root: &[&[&'a str]]) -> Sample<'a> {
    let mut frames = leaf.to_vec();
    for part in root {
        frames.extend_from_slice(part);
    }
    Sample::of(&frames)
}

#[test]
fn features_are_told_by_inferred_names() {
    for (leaf, feature, mechanism) in [
        (
            "i:Envoy::Http::Http1::ConnectionImpl [vslot 16]",
            "http_codec",
            "parse",
        ),
        (
            "i:source/common/http/http1/codec_impl.cc [same object file]",
            "http_codec",
            "parse",
        ),
        ("i:quiche::BalsaFrame [vslot 2]", "http_codec", "parse"),
        ("i:Envoy::Router::Filter [vslot 6]", "routing", "other"),
        (
            "i:Envoy::ConnectionPool::ConnPoolImplBase [vslot 5]",
            "pools",
            "other",
        ),
        (
            "i:Envoy::Http::Http1::ActiveClient [vslot 20]",
            "pools",
            "other",
        ),
        (
            "i:Envoy::Network::ConnectionImpl [vslot 27]",
            "connections",
            "other",
        ),
        (
            "i:Envoy::Extensions::Tracers::Zipkin::Span [vslot 3]",
            "tracing",
            "other",
        ),
        (
            "i:source/extensions/tracers/zipkin/zipkin_tracer_impl.cc",
            "tracing",
            "other",
        ),
        (
            "i:Envoy::Extensions::AccessLoggers::File::FileAccessLog [vslot 3]",
            "access_log_write",
            "other",
        ),
        (
            "i:Envoy::Extensions::AccessLoggers::HttpGrpc::HttpGrpcAccessLog [vslot 3]",
            "access_log_grpc",
            "other",
        ),
        (
            "i:Envoy::Stats::CounterImpl [vslot 18]",
            "stats_record",
            "other",
        ),
        (
            "i:Envoy::Extensions::StatSinks::MetricsService::GrpcMetricsStreamerImpl [vslot 2]",
            "stats_flush",
            "other",
        ),
        (
            "i:Envoy::Extensions::HttpFilters::Lua::Filter [vslot 12]",
            "lua",
            "other",
        ),
        (
            "i:Envoy::Extensions::Common::Wasm::Context [vslot 12]",
            "wasm",
            "other",
        ),
        (
            "i:Envoy::Extensions::HttpFilters::RBACFilter::RoleBasedAccessControlFilter [vslot 2]",
            "filter:rbac",
            "other",
        ),
        (
            "i:Envoy::Extensions::HttpFilters::ExtAuthz::Filter [vslot 2]",
            "filter:ext_authz",
            "other",
        ),
        (
            "i:Envoy::Extensions::HttpFilters::GrpcHttp1ReverseBridge::Filter [vslot 2]",
            "filter:grpc_http1_reverse_bridge",
            "other",
        ),
        (
            "i:source/extensions/filters/http/cors/cors_filter.cc",
            "filter:cors",
            "other",
        ),
        ("i:Envoy::Config::GrpcMuxImpl [vslot 4]", "xds", "other"),
        ("i:Envoy::Server::StatsRequest [vslot 4]", "admin", "other"),
        (
            "i:external/boringssl+/ssl/tls_record.cc",
            "tls_records",
            "crypto",
        ),
        (
            "i:external/boringssl+/ssl/handshake_server.cc",
            "tls_handshake",
            "crypto",
        ),
    ] {
        check(stack(&[leaf], &[&LOOP]), feature, mechanism);
    }
}

#[test]
fn features_are_told_by_exact_names() {
    for (leaf, feature) in [
        (
            "Envoy::Http::Http1::ConnectionImpl::dispatch(Envoy::Buffer::Instance&)",
            "http_codec",
        ),
        (
            "non-virtual thunk to Envoy::Router::Filter::decodeHeaders(Envoy::Http::RequestHeaderMap&, bool)",
            "routing",
        ),
        (
            "Envoy::Tracing::HttpTracerUtility::finalizeDownstreamSpan(Envoy::Tracing::Span&)",
            "tracing",
        ),
        (
            "Envoy::Extensions::HttpFilters::JwtAuthn::Filter::decodeHeaders(bool)",
            "filter:jwt_authn",
        ),
        ("SSL_do_handshake", "tls_handshake"),
        ("bssl::tls_open_record(ssl_st*)", "tls_records"),
        (
            "Envoy::Server::InstanceBase::flushStatsInternal()",
            "stats_flush",
        ),
        ("nghttp2_session_mem_recv", "http_codec"),
        ("lj_vm_call", "lua"),
    ] {
        let (found, _, rule) = attributed(&embedded(), Sample::of(&[leaf, "start_thread"]));
        assert_eq!(found, feature, "{leaf}");
        assert!(rule.is_some());
    }
}

#[test]
fn threads_tell_what_frames_do_not() {
    let flush = Sample {
        thread: "AccessLogFlush",
        ..Sample::of(&["envoy+0x10", "envoy+0x20"])
    };
    check(flush, "access_log_write", "other");
    // A frame knows better.
    let frames = Sample {
        thread: "AccessLogFlush",
        ..Sample::of(&["i:Envoy::Stats::CounterImpl [vslot 18]"])
    };
    check(frames, "stats_record", "other");
}

#[test]
fn samples_without_a_rule_have_names_or_not() {
    check(Sample::of(&["strange", "main"]), "unattributed", "other");
    check(
        Sample::of(&["envoy+0x10", "envoy+0x20", "main"]),
        "no_symbols",
        "other",
    );
    check(Sample::of(&["m:[stack lost]"]), "no_symbols", "other");
    check(Sample::of(&["k:do_exit"]), "unattributed", "other");
}

#[test]
fn all_work_below_who_asked_for_it_is_its_own() {
    let send = [
        "k:tcp_sendmsg",
        "k:do_syscall_64",
        "i:Envoy::Network::ConnectionImpl [vslot 9]",
        "i:Envoy::Http::Http1::RequestEncoderImpl [vslot 4]",
        "i:source/common/router/upstream_request.cc",
        "i:Envoy::Http::AsyncStreamImpl [vslot 62]",
    ];
    check(
        stack(&send, &[&MANAGER, &LOOP]),
        "connections",
        "kernel_tcp",
    );
    let tracer = ["i:Envoy::Extensions::Tracers::Zipkin::ReporterImpl [vslot 2]"];
    check(
        stack(&send, &[&tracer, &MANAGER, &LOOP]),
        "tracing",
        "kernel_tcp",
    );
}

#[test]
fn a_filter_that_hands_a_request_on_does_not_ask_for_what_follows() {
    let filter = "i:Envoy::Extensions::HttpFilters::ExtAuthz::Filter [vslot 9]";
    let own = ["[tcmalloc]", filter];
    check(
        stack(&own, &[&MANAGER, &LOOP]),
        "filter:ext_authz",
        "allocation",
    );
    let follows = [
        "i:Envoy::Router::Filter [vslot 6]",
        "i:source/common/http/filter_manager.cc",
        "i:Envoy::Http::ActiveStreamDecoderFilter [vslot 3]",
        filter,
        // What it is called by must not be charged either.
        "i:Envoy::Extensions::Filters::Common::ExtAuthz::GrpcClientImpl [vslot 3]",
    ];
    check(stack(&follows, &[&MANAGER, &LOOP]), "routing", "other");
}

#[test]
fn formatters_are_charged_to_who_uses_them() {
    let format = ["[tcmalloc]", "i:Envoy::Formatter::FormatterImpl [vslot 2]"];
    let file = ["i:Envoy::Extensions::AccessLoggers::File::FileAccessLog [vslot 3]"];
    let service = ["i:Envoy::Extensions::AccessLoggers::OpenTelemetry::AccessLog [vslot 3]"];
    let tracer = ["i:Envoy::Extensions::Tracers::Zipkin::Span [vslot 3]"];
    check(
        stack(&format, &[&file, &MANAGER, &LOOP]),
        "access_log_format",
        "allocation",
    );
    check(
        stack(&format, &[&service, &MANAGER, &LOOP]),
        "access_log_grpc",
        "allocation",
    );
    check(
        stack(&format, &[&tracer, &MANAGER, &LOOP]),
        "tracing",
        "allocation",
    );
    check(stack(&format, &[&MANAGER, &LOOP]), "routing", "allocation");
    let alone = ["i:Envoy::Formatter::FormatterImpl [vslot 2]"];
    check(
        stack(&alone, &[&file, &LOOP]),
        "access_log_format",
        "hash_format",
    );
}

#[test]
fn interrupts_are_nobodys_work_and_loopback_is_the_senders() {
    let receive = ["k:tcp_v4_rcv", "k:net_rx_action", "k:handle_softirqs"];
    let interrupt = ["k:asm_common_interrupt"];
    let tracer = ["i:Envoy::Extensions::Tracers::Zipkin::Span [vslot 3]"];
    check(
        stack(&receive, &[&interrupt, &tracer, &LOOP]),
        "kernel_receive",
        "kernel_tcp",
    );
    let send = ["k:tcp_sendmsg", "k:do_syscall_64", "__libc_send"];
    check(
        stack(&receive, &[&send, &tracer, &LOOP]),
        "tracing",
        "kernel_tcp",
    );
}

#[test]
fn the_innermost_mechanism_counts_up_to_the_frame_that_gave_the_feature() {
    let log = "i:Envoy::Extensions::AccessLoggers::File::FileAccessLog [vslot 3]";
    for (leaf, mechanism) in [
        ("[tcmalloc]", "allocation"),
        ("i:[tcmalloc]", "allocation"),
        ("libc.so.6!__memcpy_avx512_unaligned_erms", "copy"),
        ("libc.so.6!__memcmp_evex_movbe", "hash_format"),
        ("libc.so.6!pthread_mutex_lock", "lock"),
        ("k:futex_wake", "lock"),
        ("k:nf_hook_slow", "netfilter"),
        ("k:asm_exc_page_fault", "page_fault"),
        ("k:try_to_wake_up", "scheduler"),
        ("k:do_syscall_64", "syscall"),
        ("k:_copy_to_iter", "copy"),
        ("strange", "other"),
    ] {
        // The parser is further to the root than the caller: not its parsing.
        let parser = ["i:quiche::BalsaFrame [vslot 2]"];
        check(
            stack(&[leaf, log], &[&parser, &LOOP]),
            "access_log_write",
            mechanism,
        );
    }
}

#[test]
fn the_event_loop_is_what_nobody_else_is() {
    check(
        stack(&["libc.so.6!epoll_wait"], &[&LOOP]),
        "event_loop",
        "syscall",
    );
    check(stack(&["envoy+0x5b4fcf2"], &[&LOOP]), "event_loop", "other");
    // Something with a name runs in it that no rule knows.
    check(
        stack(&["i:Envoy::Something::New [vslot 2]"], &[&LOOP]),
        "unattributed",
        "other",
    );
}

#[test]
fn nginx_and_other_programs_have_their_own_rules() {
    let nginx = |frames: &[&'static str]| Sample {
        process: "nginx",
        thread: "nginx",
        ..Sample::of(frames)
    };
    check(
        nginx(&["nginx!ngx_http_parse_header_line"]),
        "http_codec",
        "parse",
    );
    check(
        nginx(&[
            "k:tcp_sendmsg",
            "nginx!ngx_writev",
            "nginx!ngx_http_write_filter",
        ]),
        "connections",
        "kernel_tcp",
    );
    check(
        nginx(&[
            "nginx!ngx_ssl_handshake",
            "nginx!ngx_process_events_and_timers",
        ]),
        "tls_handshake",
        "crypto",
    );
    let other = |frames: &[&'static str]| Sample {
        process: "server",
        thread: "server",
        ..Sample::of(frames)
    };
    check(
        other(&["libcrypto.so.3!whatever", "libssl.so.3!SSL_write", "main"]),
        "tls_records",
        "crypto",
    );
    check(
        other(&["runtime.scanobject", "runtime.gcDrain"]),
        "runtime",
        "other",
    );
    // Envoy's names mean nothing in another program.
    check(
        other(&["Envoy::Router::Filter::decodeHeaders()", "main"]),
        "unattributed",
        "other",
    );
}

#[test]
fn functions_that_were_inlined_are_innermost_first() {
    use profiler_model::{Function, NameSource};
    let mut profile = super::profile(&[Sample::of(&["outer", "main"])], 1);
    let mut name = |text: &str| {
        profile.strings.push(text.to_owned());
        u32::try_from(profile.strings.len() - 1).unwrap()
    };
    let names = [
        name("Envoy::Stats::CounterImpl::add(unsigned long)"),
        name("Envoy::Router::Filter::chargeUpstreamCode()"),
    ];
    profile.frames[0].functions = names
        .map(|name| Function {
            name,
            file: 0,
            line: 0,
        })
        .to_vec();
    profile.frames[0].source = NameSource::Dwarf;
    let rules = embedded();
    let attributions = super::Attributions::of(&rules, &profile);
    let found = attributions.of_row(&profile.samples[0]);
    assert_eq!(attributions.feature_id(found.feature), "stats_record");
    assert_eq!(found.frame, Some((0, 0)));
}

/// The page colours frames by what the matrix of the same samples says.
#[test]
fn the_features_of_a_picture_are_those_of_the_matrix() {
    use crate::render::{Format, View, render_view};

    let tracing = "i:Envoy::Extensions::Tracers::Zipkin::Span [vslot 3]";
    let samples = [
        stack(&[tracing], &[&MANAGER, &LOOP]),
        stack(&["i:Envoy::Router::Filter [vslot 6]"], &[&MANAGER, &LOOP]),
    ];
    let profile = super::profile(&samples, 1);
    let rules = embedded();
    let features = rules.features(&profile);
    let view = View {
        features: Some(&features),
        ..View::default()
    };
    let bytes = render_view(&profile, Format::Flamegraph, &view).unwrap();
    let title = |id: &str| {
        let list = rules.list().features;
        list.into_iter()
            .find(|feature| feature.id == id)
            .unwrap()
            .title
    };
    for id in ["tracing", "routing"] {
        let title = title(id);
        assert!(
            bytes
                .windows(title.len())
                .any(|part| part == title.as_bytes()),
            "{title} is not in the file"
        );
    }
}
