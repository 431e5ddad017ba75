//! Envoy's response flags: errors and events of a request or connection.

/// One response flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// The name in `%RESPONSE_FLAGS%`.
    pub short_name: &'static str,
    /// The name in `%RESPONSE_FLAGS_LONG%`.
    pub long_name: &'static str,
    /// The meaning, as a sentence.
    pub meaning: &'static str,
    /// The usual cause, and the setting to look at.
    pub cause: &'static str,
}

/// A set of response flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u32);

impl Flags {
    /// Of the fields of a message of the access log service: that of field `n` is bit `n - 1`.
    pub(crate) fn from_fields(bits: u32) -> Self {
        Self(bits)
    }

    /// Parses the output of `%RESPONSE_FLAGS%`: short names separated by commas, or `-`. The second value is the number of names
    /// that are not in [`FLAGS`]; extensions of Envoy can register their own.
    pub fn from_short_names(text: &str) -> (Self, u32) {
        let mut flags = Self::default();
        let mut unknown = 0_u32;
        for name in text.split(',').map(str::trim) {
            if name.is_empty() || name == NO_FLAGS {
                continue;
            }
            match FLAGS.iter().position(|flag| flag.short_name == name) {
                Some(bit) => flags.0 |= 1 << bit,
                None => unknown = unknown.saturating_add(1),
            }
        }
        (flags, unknown)
    }

    /// The short names separated by commas in the order of [`FLAGS`]; `-` if the set is empty.
    pub fn short_names(self) -> String {
        let names: Vec<&str> = self.iter().map(|flag| flag.short_name).collect();
        if names.is_empty() {
            NO_FLAGS.to_owned()
        } else {
            names.join(",")
        }
    }

    /// The flags of the set, in the order of [`FLAGS`].
    pub fn iter(self) -> impl Iterator<Item = &'static Flag> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            // Of the flag that is next; 32, and no flag, where none is left.
            let bit = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            FLAGS.get(usize::try_from(bit).ok()?)
        })
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set as a number: bit `n` is the flag at place `n` of [`FLAGS`].
    pub fn bits(self) -> u32 {
        self.0
    }
}

const NO_FLAGS: &str = "-";

/// All of them: first those of `envoy.data.accesslog.v3.ResponseFlags` in the order of their field numbers, then those of
/// text formats only. Names are those of Envoy's `source/common/stream_info/utility.h`.
pub const FLAGS: [Flag; 30] = [
    Flag {
        short_name: "LH",
        long_name: "FailedLocalHealthCheck",
        meaning: "Envoy answered a health check with 503, because the local service failed its own.",
        cause: "The service is down or draining; `envoy.filters.http.health_check`, readiness probes",
    },
    Flag {
        short_name: "UH",
        long_name: "NoHealthyUpstream",
        meaning: "The upstream cluster had no healthy host, and Envoy answered 503.",
        cause: "No ready pods, failed health checks or hosts ejected by outlier detection; `outlier_detection`, `health_checks`, \
                `healthy_panic_threshold`",
    },
    Flag {
        short_name: "UT",
        long_name: "UpstreamRequestTimeout",
        meaning: "The upstream did not answer in time, and Envoy answered 504.",
        cause: "A slow service or a short timeout; the route's `timeout` and `retry_policy.per_try_timeout`",
    },
    Flag {
        short_name: "LR",
        long_name: "LocalReset",
        meaning: "Envoy itself reset the upstream stream, and answered 503.",
        cause: "An invalid response, or a limit on headers or streams; `max_response_headers_kb`, `max_concurrent_streams`",
    },
    Flag {
        short_name: "UR",
        long_name: "UpstreamRemoteReset",
        meaning: "The upstream reset the stream, and Envoy answered 503.",
        cause: "The service refused or aborted the request, often while it restarts; its log, `retry_on: reset`",
    },
    Flag {
        short_name: "UF",
        long_name: "UpstreamConnectionFailure",
        meaning: "The connection to the upstream could not be made, and Envoy answered 503.",
        cause: "Connection refused, timed out or failed TLS, see the transport failure reason; `connect_timeout`, the mode of mTLS on \
                both ends, network policies",
    },
    Flag {
        short_name: "UC",
        long_name: "UpstreamConnectionTermination",
        meaning: "The upstream closed the connection before the response was complete, and Envoy answered 503 if nothing had been sent.",
        cause: "The service closes idle connections before Envoy does, or crashed; its keep-alive timeout against `idle_timeout` of the \
                cluster",
    },
    Flag {
        short_name: "UO",
        long_name: "UpstreamOverflow",
        meaning: "A circuit breaker was open, and Envoy answered 503 without trying.",
        cause: "More connections, pending requests or retries than allowed; `circuit_breakers.thresholds`, Istio's `connectionPool`",
    },
    Flag {
        short_name: "NR",
        long_name: "NoRouteFound",
        meaning: "No route matched the request, and Envoy answered 404, or no filter chain matched the connection.",
        cause: "The host or path is in no route, or the port expects another protocol; `virtual_hosts`, `filter_chain_match`, Istio's \
                VirtualService and Gateway hosts",
    },
    Flag {
        short_name: "DI",
        long_name: "DelayInjected",
        meaning: "The request was delayed on purpose by fault injection.",
        cause: "A test that is still on; `envoy.filters.http.fault`, Istio's `fault.delay`",
    },
    Flag {
        short_name: "FI",
        long_name: "FaultInjected",
        meaning: "The request was aborted on purpose by fault injection.",
        cause: "A test that is still on; `envoy.filters.http.fault`, Istio's `fault.abort`",
    },
    Flag {
        short_name: "RL",
        long_name: "RateLimited",
        meaning: "A rate limit refused the request with 429.",
        cause: "More requests than allowed; `envoy.filters.http.local_ratelimit`, `envoy.filters.http.ratelimit`",
    },
    Flag {
        short_name: "UAEX",
        long_name: "UnauthorizedExternalService",
        meaning: "The external authorization service denied the request.",
        cause: "A policy or an expired credential; `envoy.filters.http.ext_authz` and the log of its service",
    },
    Flag {
        short_name: "RLSE",
        long_name: "RateLimitServiceError",
        meaning: "The rate limit service failed, and the request was refused.",
        cause: "The service is down or slow; `failure_mode_deny` and `timeout` of `envoy.filters.http.ratelimit`",
    },
    Flag {
        short_name: "DC",
        long_name: "DownstreamConnectionTermination",
        meaning: "The client closed its connection before the response was complete.",
        cause: "The client's own timeout, or a user who left; compare the duration with the client's timeout",
    },
    Flag {
        short_name: "URX",
        long_name: "UpstreamRetryLimitExceeded",
        meaning: "The last allowed retry or connection attempt failed too.",
        cause: "The other flags and details say why each attempt failed; `retry_policy.num_retries`, `max_connect_attempts`",
    },
    Flag {
        short_name: "SI",
        long_name: "StreamIdleTimeout",
        meaning: "Nothing was sent on the stream for too long, and Envoy ended it with 408 or 504.",
        cause: "Long polling or streams with pauses; `stream_idle_timeout`, the route's `idle_timeout`",
    },
    Flag {
        short_name: "IH",
        long_name: "InvalidEnvoyRequestHeaders",
        meaning: "An `x-envoy-*` header had an invalid value, and Envoy answered 400.",
        cause: "A client that sets Envoy's headers itself; `strict_check_headers` of the router",
    },
    Flag {
        short_name: "DPE",
        long_name: "DownstreamProtocolError",
        meaning: "The client's request was not valid HTTP.",
        cause: "Another protocol or TLS on this port, or a faulty client; `codec_type`, the name of the Service's port",
    },
    Flag {
        short_name: "UMSDR",
        long_name: "UpstreamMaxStreamDurationReached",
        meaning: "The upstream request lasted longer than allowed.",
        cause: "Long streams; `max_stream_duration` of the route or the cluster",
    },
    Flag {
        short_name: "RFCF",
        long_name: "ResponseFromCacheFilter",
        meaning: "The response came from Envoy's cache, which is not an error.",
        cause: "`envoy.filters.http.cache`",
    },
    Flag {
        short_name: "NFCF",
        long_name: "NoFilterConfigFound",
        meaning: "A filter's configuration had not arrived in time, and the request was ended.",
        cause: "The control plane did not deliver it; `config_discovery` (ECDS), `apply_default_config_without_warming`",
    },
    Flag {
        short_name: "DT",
        long_name: "DurationTimeout",
        meaning: "The request or connection lasted longer than connections may.",
        cause: "`max_connection_duration`, `max_downstream_connection_duration`",
    },
    Flag {
        short_name: "UPE",
        long_name: "UpstreamProtocolError",
        meaning: "The upstream's response was not valid HTTP.",
        cause: "The cluster speaks another version of HTTP or no HTTP; `explicit_http_config`, `appProtocol` of the Service's port",
    },
    Flag {
        short_name: "NC",
        long_name: "NoClusterFound",
        meaning: "The route names a cluster that Envoy does not have, and Envoy answered 503.",
        cause: "A wrong name, or a cluster that the control plane has not sent; the route's `cluster`, Istio's DestinationRule subsets",
    },
    Flag {
        short_name: "OM",
        long_name: "OverloadManagerTerminated",
        meaning: "The overload manager ended the request to protect Envoy.",
        cause: "Envoy's memory or connections reached a limit; `overload_manager`, the container's memory limit",
    },
    Flag {
        short_name: "DF",
        long_name: "DnsResolutionFailed",
        meaning: "The name of the upstream host could not be resolved.",
        cause: "A wrong name or a failing name server; `dns_resolution_config`, `dns_lookup_family`, ServiceEntry hosts",
    },
    Flag {
        short_name: "DR",
        long_name: "DownstreamRemoteReset",
        meaning: "The client reset the stream before the response was complete.",
        cause: "The client cancelled the request, often by its own timeout or deadline",
    },
    Flag {
        short_name: "DO",
        long_name: "DropOverload",
        meaning: "A share of requests is dropped by configuration, and Envoy answered 503.",
        cause: "`drop_overloads` in the policy of the endpoints",
    },
    Flag {
        short_name: "UDO",
        long_name: "UnconditionalDropOverload",
        meaning: "All requests are dropped by configuration, and Envoy answered 503.",
        cause: "`drop_overloads` of 100 % in the policy of the endpoints",
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost::encoding::encode_varint;

    use super::{FLAGS, Flags};
    use crate::{
        limits::Limits,
        testing::{decode_all, field},
    };

    /// Fields of the message.
    const FIELDS: u32 = 28;

    /// The flags of an entry with this encoded message of flags.
    fn decoded(flags: &[u8]) -> Flags {
        let entry = field(1, &field(16, flags));
        let message = field(2, &field(1, &entry));
        let (_, entries) = decode_all(message, &Limits::default()).unwrap();
        entries[0].response.flags
    }

    #[test]
    fn each_field_of_the_message_sets_the_flag_at_its_place() {
        for number in 1..=FIELDS {
            if number == 13 {
                assert_eq!(decoded(&field(number, &[])).bits(), 1 << 12);
                continue;
            }
            let mut encoded = Vec::new();
            for (value, bits) in [(1, 1 << (number - 1)), (0, 0), (7, 1 << (number - 1))] {
                encode_varint(u64::from(number << 3), &mut encoded);
                encode_varint(value, &mut encoded);
                // The last one holds.
                assert_eq!(decoded(&encoded).bits(), bits);
            }
        }
    }

    #[test]
    fn names_are_unique_and_lead_to_their_flag() {
        let mut names = BTreeSet::new();
        for (bit, flag) in FLAGS.iter().enumerate() {
            assert!(names.insert(flag.short_name), "{}", flag.short_name);
            assert!(names.insert(flag.long_name), "{}", flag.long_name);
            let (flags, unknown) = Flags::from_short_names(flag.short_name);
            assert_eq!((flags.bits(), unknown), (1 << bit, 0));
            assert_eq!(flags.short_names(), flag.short_name);
        }
    }

    #[test]
    fn text_of_envoy_is_read_and_written() {
        let check = |text: &str, written: &str, unknown: u32| {
            let (flags, others) = Flags::from_short_names(text);
            assert_eq!((flags.short_names().as_str(), others), (written, unknown));
        };
        check("-", "-", 0);
        check("", "-", 0);
        check("UF,URX", "UF,URX", 0);
        check("URX,UF", "UF,URX", 0);
        check("UH, NR", "UH,NR", 0);
        check("CUSTOM,DC", "DC", 1);
        check("uf", "-", 1);
        let all: Vec<&str> = FLAGS.iter().map(|flag| flag.short_name).collect();
        check(&all.join(","), &all.join(","), 0);
    }

    #[test]
    fn unauthorized_requests_are_recognised_whatever_the_reason_is() {
        for reason in [0, 1, 7] {
            assert_eq!(decoded(&field(13, &[8, reason])).short_names(), "UAEX");
        }
    }

    #[test]
    fn a_row_says_what_happened_in_a_sentence_and_where_to_look() {
        for flag in &FLAGS {
            assert!(flag.meaning.ends_with('.'), "{}", flag.short_name);
            assert!(!flag.cause.ends_with('.'), "{}", flag.short_name);
            for text in [flag.meaning, flag.cause] {
                assert!(
                    text.len() > 10 && !text.contains('|') && !text.contains('\n'),
                    "{text}"
                );
            }
        }
    }
}
