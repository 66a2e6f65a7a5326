use super::answers::BODY_BYTES_MAX;
use super::guard::Via;
use super::office::Office;
use super::problem::{Kind, Problem};
use super::routes::Route;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONNECTION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, Request};
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// A request comes whole within this time, the first of a connection, too.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// Whoever says nothing for so long between two requests, or does not take an answer, is let go.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// No answer takes longer; each has a patience of its own.
const ANSWER_MAX: Duration = Duration::from_secs(90);
/// The other end has so long to read the last answer and to close, while what it still sends is thrown away: a socket that
/// is closed with unread bytes takes the answer back.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What a connection is doing, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It was accepted, and has said nothing yet.
    Fresh(Instant),
    Receiving(Instant),
    Answering(Instant),
    /// A request was answered, and no other has begun.
    Silent(Instant),
}

impl Phase {
    fn until(self) -> Instant {
        match self {
            Phase::Fresh(since) | Phase::Receiving(since) => since + REQUEST_MAX,
            Phase::Answering(since) => since + ANSWER_MAX,
            Phase::Silent(since) => since + SILENCE_MAX,
        }
    }

    /// When the connection is let go. A request that does not come whole is answered first.
    fn ends(self) -> Instant {
        match self {
            Phase::Receiving(_) => self.until() + LAST_WORDS,
            Phase::Fresh(_) | Phase::Answering(_) | Phase::Silent(_) => self.until(),
        }
    }

    /// Since when nothing is asked on it.
    pub fn idle_since(self) -> Option<Instant> {
        match self {
            Phase::Fresh(since) | Phase::Silent(since) => Some(since),
            Phase::Receiving(_) | Phase::Answering(_) => None,
        }
    }
}

/// Serves one connection until its end.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    stream: S,
    via: Via,
    phase: Rc<Cell<Phase>>,
    office: Arc<Office>,
    router: Router,
) {
    let io = TokioIo::new(Heard { stream, phase: phase.clone() });
    let service = service_fn({
        let phase = phase.clone();
        move |request| respond(request, via, phase.clone(), office.clone(), router.clone())
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(SILENCE_MAX).max_header_size(HEAD_BYTES_MAX);
    http.max_buf_size(HEAD_BYTES_MAX + 4_096).half_close(true);
    let mut conn = http.serve_connection(io, service);
    let mut alarm = pin!(tokio::time::sleep_until(phase.get().ends().into()));
    let is_answered = poll_fn(|cx| {
        // An error is the end of a connection, and of nothing else.
        if Pin::new(&mut conn).poll(cx).is_ready() {
            return Poll::Ready(true);
        }
        while alarm.as_mut().poll(cx).is_ready() {
            let ends = phase.get().ends();
            if ends <= Instant::now() {
                return Poll::Ready(false);
            }
            alarm.as_mut().reset(ends.into());
        }
        Poll::Pending
    })
    .await;
    if is_answered {
        let stream = conn.into_parts().io.into_inner().stream;
        let _ = tokio::time::timeout(LAST_WORDS, farewell(stream)).await;
    }
}

/// Says that nothing more comes, and reads until the other end says the same.
async fn farewell<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    if poll_fn(|cx| Pin::new(&mut stream).poll_shutdown(cx)).await.is_err() {
        return;
    }
    let mut room = [0; 4_096];
    loop {
        let mut unread = ReadBuf::new(&mut room);
        let read = poll_fn(|cx| Pin::new(&mut stream).poll_read(cx, &mut unread)).await;
        if read.is_err() || unread.filled().is_empty() {
            return;
        }
    }
}

async fn respond(
    request: Request<Incoming>,
    via: Via,
    phase: Rc<Cell<Phase>>,
    office: Arc<Office>,
    router: Router,
) -> Result<Response, Infallible> {
    if phase.get().idle_since().is_some() {
        phase.set(Phase::Receiving(Instant::now()));
    }
    let (head, body) = request.into_parts();
    let route = Route::of(head.method.as_str(), head.uri.path());
    let admitted = office.guard.admit(&head, via, route.is_some_and(|route| route.is_open), Instant::now());
    let is_admitted = admitted.is_ok();
    let since = phase.get();
    let received = match admitted {
        Ok(()) => received(body, since.until()).await,
        Err(problem) => Err(problem),
    };
    phase.set(Phase::Answering(Instant::now()));
    let (mut response, is_whole) = match received {
        Ok(body) => {
            let request = Request::from_parts(head, Body::from(body));
            let Ok(response) = TowerToHyperService::new(router).call(request).await;
            (response, true)
        }
        Err(problem) => (problem.into_response(), false),
    };
    let handler = route.filter(|_| is_admitted).map(|route| route.name);
    office.traffic.count(handler, response.status().as_u16());
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !is_whole {
        // What is left of the request is not read.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    phase.set(Phase::Silent(Instant::now()));
    Ok(response)
}

/// Of every answer: for whoever asked it, and for no other page.
const HEADERS: [(HeaderName, &str); 5] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

/// The whole body of a request.
async fn received(body: Incoming, until: Instant) -> Result<Bytes, Problem> {
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout_at(until.into(), gathered(body)).await {
        Ok(gathered) => gathered,
        Err(_) => Err(Problem::new(Kind::TooSlow, "the request did not come whole within 10 s")),
    }
}

async fn gathered(mut body: Incoming) -> Result<Bytes, Problem> {
    let mut whole = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|_| Problem::new(Kind::BadRequest, "the body is cut, or badly framed"))?;
        if let Ok(piece) = frame.into_data() {
            if whole.len() + piece.len() > BODY_BYTES_MAX {
                return Err(too_large());
            }
            whole.extend_from_slice(&piece);
        }
    }
    Ok(whole.into())
}

fn too_large() -> Problem {
    Problem::new(Kind::TooLarge, "the body is larger than 1 MiB: send it in pieces")
}

/// A stream that notes when something was heard of its other end.
struct Heard<S> {
    stream: S,
    phase: Rc<Cell<Phase>>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before && self.phase.get().idle_since().is_some() {
            self.phase.set(Phase::Receiving(Instant::now()));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use tokio::net::TcpStream;

    /// More was sent than is read before the last answer: whoever sent it reads the answer, and then the end.
    #[test]
    fn the_last_answer_is_read_though_more_was_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut asker = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut ours, _) = listener.accept().unwrap();
        ours.write_all(b"the last answer").unwrap();
        ours.set_nonblocking(true).unwrap();
        asker.write_all(&[b'x'; 10_000]).unwrap();
        let asker = std::thread::spawn(move || {
            let mut heard = Vec::new();
            asker.read_to_end(&mut heard).map(|_| heard)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { farewell(TcpStream::from_std(ours).unwrap()).await });
        assert_eq!(asker.join().unwrap().unwrap(), b"the last answer");
    }
}
