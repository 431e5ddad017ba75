//! When the parts of a request passed through the proxy, and the phases between them.

/// Nanoseconds from the first byte received from downstream to other points of a request. A point that Envoy did not report
/// is absent, which differs from 0. Upstream points are those of the last attempt.
///
/// They exclude time in socket buffers of the kernel and in the flow control of HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// d6: the last byte of the request was received from downstream.
    pub last_downstream_rx_ns: Option<u64>,
    /// d7: the first byte was sent upstream.
    pub first_upstream_tx_ns: Option<u64>,
    /// d8: the last byte was sent upstream.
    pub last_upstream_tx_ns: Option<u64>,
    /// d9: the first byte of the response was received from upstream.
    pub first_upstream_rx_ns: Option<u64>,
    /// d10: the last byte of the response was received from upstream.
    pub last_upstream_rx_ns: Option<u64>,
    /// d11: the first byte of the response was sent downstream.
    pub first_downstream_tx_ns: Option<u64>,
    /// d12: the last byte of the response was sent downstream.
    pub last_downstream_tx_ns: Option<u64>,
    /// The stream was destroyed, or the connection closed.
    pub duration_ns: Option<u64>,
}

/// One phase of a request.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    pub name: &'static str,
    /// The formula over the numbers of the points.
    pub formula: &'static str,
    pub meaning: &'static str,
    /// Its nanoseconds. Absent if one of its points is absent, or if they are out of order: when a response starts before the
    /// request is complete, the phases overlap.
    pub ns: fn(&Timing) -> Option<u64>,
}

/// The phases, in the order of a request without streaming.
pub const PHASES: [Phase; 7] = [
    Phase {
        name: "read",
        formula: "d6",
        meaning: "The request arrives from the client.",
        ns: Timing::read_ns,
    },
    Phase {
        name: "to_upstream",
        formula: "d7 - d6; d7 if d7 < d6 or without d6",
        meaning: "The proxy has what it needs and prepares the request: filters, routing, and the wait for an upstream connection, also a new \
                  one with its TLS handshake. If the request was complete before anything was sent upstream (it has no body, or \
                  the body is buffered), this begins with its last byte; if the body is streamed, with its first.",
        ns: Timing::to_upstream_ns,
    },
    Phase {
        name: "upstream",
        formula: "d9 - d8",
        meaning: "The upstream has the request and has not begun to answer: network and service.",
        ns: Timing::upstream_ns,
    },
    Phase {
        name: "response",
        formula: "d10 - d9",
        meaning: "The response arrives from the upstream.",
        ns: Timing::response_ns,
    },
    Phase {
        name: "to_client",
        formula: "d11 - d9",
        meaning: "The proxy has the beginning of the response and prepares it: filters.",
        ns: Timing::to_client_ns,
    },
    Phase {
        name: "tail",
        formula: "d12 - d10",
        meaning: "The proxy has the whole response and still sends it: filters that buffer, and clients that read slowly.",
        ns: Timing::tail_ns,
    },
    Phase {
        name: "cleanup",
        formula: "duration - d12",
        meaning: "The response is sent and the stream still exists. OpenTelemetry records have the duration in whole milliseconds, so that this \
                  phase is mostly absent there.",
        ns: Timing::cleanup_ns,
    },
];

impl Timing {
    /// d6.
    pub fn read_ns(&self) -> Option<u64> {
        self.last_downstream_rx_ns
    }

    /// d7 - d6 if the request was complete before its first byte was sent upstream, as without a body. Otherwise d7, also if d6 is
    /// absent because the request was never complete. The wait for the body of the client is not time of the proxy.
    pub fn to_upstream_ns(&self) -> Option<u64> {
        let sent = self.first_upstream_tx_ns?;
        let complete = self.last_downstream_rx_ns.unwrap_or_default();
        Some(sent.checked_sub(complete).unwrap_or(sent))
    }

    /// d9 - d8.
    pub fn upstream_ns(&self) -> Option<u64> {
        between(self.last_upstream_tx_ns, self.first_upstream_rx_ns)
    }

    /// d10 - d9.
    pub fn response_ns(&self) -> Option<u64> {
        between(self.first_upstream_rx_ns, self.last_upstream_rx_ns)
    }

    /// d11 - d9.
    pub fn to_client_ns(&self) -> Option<u64> {
        between(self.first_upstream_rx_ns, self.first_downstream_tx_ns)
    }

    /// d12 - d10.
    pub fn tail_ns(&self) -> Option<u64> {
        between(self.last_upstream_rx_ns, self.last_downstream_tx_ns)
    }

    /// The duration - d12.
    pub fn cleanup_ns(&self) -> Option<u64> {
        between(self.last_downstream_tx_ns, self.duration_ns)
    }

    /// Time that the proxy added to a request with one attempt: `to_upstream` and `to_client`.
    pub fn in_proxy_ns(&self) -> Option<u64> {
        self.to_upstream_ns()?.checked_add(self.to_client_ns()?)
    }
}

fn between(start: Option<u64>, end: Option<u64>) -> Option<u64> {
    end?.checked_sub(start?)
}

#[cfg(test)]
mod tests {
    use super::{PHASES, Timing};

    const BUFFERED: Timing = Timing {
        last_downstream_rx_ns: Some(10),
        first_upstream_tx_ns: Some(30),
        last_upstream_tx_ns: Some(35),
        first_upstream_rx_ns: Some(100),
        last_upstream_rx_ns: Some(150),
        first_downstream_tx_ns: Some(107),
        last_downstream_tx_ns: Some(180),
        duration_ns: Some(200),
    };

    fn check(timing: &Timing, expected: [Option<u64>; 7]) {
        assert_eq!(PHASES.map(|phase| (phase.ns)(timing)), expected);
    }

    #[test]
    fn phases_of_a_request_that_is_complete_before_it_is_sent() {
        check(&BUFFERED, [10, 20, 65, 50, 7, 30, 20].map(Some));
        assert_eq!(BUFFERED.in_proxy_ns(), Some(27));
    }

    #[test]
    fn a_streamed_body_is_not_time_of_the_proxy() {
        let streamed = Timing {
            last_downstream_rx_ns: Some(34),
            ..BUFFERED
        };
        assert_eq!(streamed.to_upstream_ns(), Some(30));
        assert_eq!(streamed.in_proxy_ns(), Some(37));
    }

    #[test]
    fn a_phase_with_an_absent_point_is_absent() {
        check(&Timing::default(), [None; 7]);
        let unanswered = Timing {
            first_upstream_rx_ns: None,
            ..BUFFERED
        };
        let expected = [Some(10), Some(20), None, None, None, Some(30), Some(20)];
        check(&unanswered, expected);
        assert_eq!(unanswered.in_proxy_ns(), None);
        let never_complete = Timing {
            last_downstream_rx_ns: None,
            ..BUFFERED
        };
        assert_eq!(never_complete.to_upstream_ns(), Some(30));
    }

    #[test]
    fn phases_that_overlap_are_absent() {
        let early_answer = Timing {
            last_upstream_tx_ns: Some(120),
            duration_ns: Some(179),
            ..BUFFERED
        };
        let expected = [Some(10), Some(20), None, Some(50), Some(7), Some(30), None];
        check(&early_answer, expected);
    }
}
