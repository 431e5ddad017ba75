//! Live updates. One pump turns changes into messages, encoded once; every listener reads them
//! from a bounded ring and gets the number of missed ones when it was too slow.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, stream};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, broadcast::error::RecvError};
use tokio_util::sync::CancellationToken;

use super::{dto::LaggedEvent, error::ApiError};

/// Messages that a slow listener may be behind.
const RING: usize = 1024;
const MAX_LISTENERS: usize = 32;
pub(super) const PING: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct Message {
    event: &'static str,
    /// One line of JSON.
    data: String,
}

/// Where the pump sends and listeners subscribe.
#[derive(Debug)]
pub(super) struct Live {
    messages: broadcast::Sender<Arc<Message>>,
    places: Arc<Semaphore>,
}

impl Default for Live {
    fn default() -> Self {
        let (messages, _) = broadcast::channel(RING);
        Self {
            messages,
            places: Arc::new(Semaphore::new(MAX_LISTENERS)),
        }
    }
}

impl Live {
    pub(super) fn has_listeners(&self) -> bool {
        self.messages.receiver_count() > 0
    }

    /// Sends `data()` to all listeners; with none, nothing is built.
    pub(super) fn send<T: Serialize>(&self, event: &'static str, data: impl FnOnce() -> T) {
        if !self.has_listeners() {
            return;
        }
        match serde_json::to_string(&data()) {
            // An error means that the last listener has just left.
            Ok(data) => drop(self.messages.send(Arc::new(Message { event, data }))),
            Err(error) => tracing::error!(event, %error, "encode event"),
        }
    }

    /// A place for one listener; streams of every kind share the places.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.places)
            .try_acquire_owned()
            .map_err(|_| ApiError::Overloaded {
                detail: "too many listeners; close another page of the agent",
            })
    }

    /// The events from now on, until the client leaves or `shutdown` is cancelled.
    pub(super) fn listen(
        &self,
        shutdown: CancellationToken,
    ) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>, ApiError> {
        let place = self.place()?;
        let listener = Listener {
            messages: self.messages.subscribe(),
            shutdown,
            _place: place,
        };
        let events = stream::unfold(listener, |mut listener| async move {
            let event = listener.next().await?;
            Some((Ok(event), listener))
        });
        Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(PING).text("ping")))
    }
}

struct Listener {
    messages: broadcast::Receiver<Arc<Message>>,
    shutdown: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    async fn next(&mut self) -> Option<Event> {
        let received = tokio::select! {
            () = self.shutdown.cancelled() => return None,
            received = self.messages.recv() => received,
        };
        match received {
            Ok(message) => Some(Event::default().event(message.event).data(&message.data)),
            Err(RecvError::Lagged(missed)) => {
                let data = serde_json::to_string(&LaggedEvent { missed }).unwrap_or_default();
                Some(Event::default().event("lagged").data(data))
            }
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    #[tokio::test]
    async fn a_slow_listener_learns_what_it_missed_and_goes_on() {
        let live = Live::default();
        let shutdown = CancellationToken::new();
        let place = Arc::clone(&live.places).try_acquire_owned().unwrap();
        let mut listener = Listener {
            messages: live.messages.subscribe(),
            shutdown,
            _place: place,
        };
        for _ in 0..RING + 7 {
            live.send("task", || 1);
        }
        let text = |event: Event| async move {
            let body = Sse::new(stream::iter([Ok::<_, Infallible>(event)]));
            let response = axum::response::IntoResponse::into_response(body);
            let mut chunks = response.into_body().into_data_stream();
            String::from_utf8(chunks.next().await.unwrap().unwrap().to_vec()).unwrap()
        };
        let first = text(listener.next().await.unwrap()).await;
        assert_eq!(first, "event: lagged\ndata: {\"missed\":7}\n\n");
        let second = text(listener.next().await.unwrap()).await;
        assert_eq!(second, "event: task\ndata: 1\n\n");
    }

    #[tokio::test]
    async fn listeners_are_bounded_and_end_at_shutdown() {
        let live = Live::default();
        let shutdown = CancellationToken::new();
        let all: Vec<_> = (0..MAX_LISTENERS)
            .map(|_| live.listen(shutdown.clone()).unwrap())
            .collect();
        assert!(matches!(
            live.listen(shutdown.clone()),
            Err(ApiError::Overloaded { .. })
        ));
        drop(all);
        let place = Arc::clone(&live.places).try_acquire_owned().unwrap();
        let mut listener = Listener {
            messages: live.messages.subscribe(),
            shutdown: shutdown.clone(),
            _place: place,
        };
        shutdown.cancel();
        assert!(listener.next().await.is_none());
    }
}
