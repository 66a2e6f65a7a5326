use super::conn::{self, Phase};
use super::doors::{Doors, OpenDoors};
use super::guard::Via;
use super::metrics::Beside;
use super::office::{BesideSource, Office, Traffic};
use super::routes::router;
use super::socket;
use crate::engine::Desk;
use axum::Router;
use std::cell::{Cell, RefCell};
use std::fs;
use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, LocalSet};

/// The control thread of a process, until [`Listener::end`].
pub struct Listener {
    thread: JoinHandle<()>,
    /// Dropping this end ends the thread.
    end: oneshot::Sender<()>,
    socket: Option<PathBuf>,
    /// What it runs on, in words.
    pub runs_on: &'static str,
    /// What could not be had.
    pub trouble: Vec<String>,
}

/// Connections at once, by each way in. When all places are taken, the one that was silent for longest goes.
const CONNECTIONS_MAX: usize = 32;
/// At the end, answers that are under way may take so long.
const GRACE: Duration = Duration::from_millis(500);
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// After an accept that failed, for want of descriptors it may be.
const PAUSE: Duration = Duration::from_millis(100);

impl Listener {
    /// Starts the thread. The data directory, if there is one, is held by this process.
    pub fn start(doors: Doors, desk: Arc<Desk>) -> io::Result<Listener> {
        Listener::start_with(doors, desk, Box::new(Beside::default))
    }

    /// The same with figures that others keep.
    pub(crate) fn start_with(doors: Doors, desk: Arc<Desk>, beside: BesideSource) -> io::Result<Listener> {
        let data = doors.data().map(PathBuf::from);
        let OpenDoors { unix, tcp, guard, trouble } = doors.open();
        let socket = data.as_deref().filter(|_| unix.is_some()).map(socket::path);
        let office = Arc::new(Office { desk, guard, data, traffic: Traffic::default(), beside });
        let (end, ended) = oneshot::channel();
        let (told, tells) = mpsc::channel();
        let thread = std::thread::Builder::new().name("control".to_string()).spawn(move || {
            let runtime = match Runtime::open() {
                Ok(runtime) => runtime,
                Err(cause) => return drop(told.send(Err(cause))),
            };
            let _ = told.send(Ok(runtime.name()));
            runtime.block_on(run(office, unix, tcp, ended));
        })?;
        let runs_on = tells.recv().map_err(io::Error::other)??;
        Ok(Listener { thread, end, socket, runs_on, trouble })
    }

    /// Lets answers that are under way end, and everything else at once.
    pub fn end(self) {
        let Listener { thread, end, socket, .. } = self;
        drop(end);
        // Whoever asks from now on reads the files.
        socket.iter().for_each(|path| drop(fs::remove_file(path)));
        // A panic there is a mistake of ours, and no reason to lose what was fetched.
        let _ = thread.join();
    }
}

/// What asynchronous code runs on: a ring of its own, or plain epoll where io_uring is refused.
enum Runtime {
    Ring(tokio_uring::Runtime),
    Plain(tokio::runtime::Runtime),
}

impl Runtime {
    fn open() -> io::Result<Runtime> {
        match tokio_uring::Runtime::new(tokio_uring::builder().entries(64)) {
            Ok(ring) => Ok(Runtime::Ring(ring)),
            Err(_) => {
                let plain = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                Ok(Runtime::Plain(plain))
            }
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Runtime::Ring(_) => "io_uring",
            Runtime::Plain(_) => "epoll, as io_uring is refused",
        }
    }

    fn block_on(&self, future: impl Future<Output = ()>) {
        match self {
            Runtime::Ring(ring) => ring.block_on(future),
            Runtime::Plain(plain) => LocalSet::new().block_on(plain, future),
        }
    }
}

/// Serves both ways in until the other end of `ended` is dropped.
async fn run(
    office: Arc<Office>,
    unix: Option<std::os::unix::net::UnixListener>,
    tcp: Option<std::net::TcpListener>,
    mut ended: oneshot::Receiver<()>,
) {
    let router = router(office.clone());
    let mut doors = Vec::new();
    if let Some(listener) = unix.and_then(|unix| UnixListener::from_std(unix).ok()) {
        let places = Places::new(&office, &router);
        doors.push((places.clone(), tokio::task::spawn_local(by_socket(listener, places)).abort_handle()));
    }
    if let Some(listener) = tcp.and_then(|tcp| TcpListener::from_std(tcp).ok()) {
        let places = Places::new(&office, &router);
        doors.push((places.clone(), tokio::task::spawn_local(by_tcp(listener, places)).abort_handle()));
    }
    let mut every = tokio::time::interval(SAMPLE_EVERY);
    poll_fn(|cx| {
        while every.poll_tick(cx).is_ready() {
            office.desk.sample();
        }
        pin!(&mut ended).poll(cx).map(drop)
    })
    .await;
    doors.iter().for_each(|(_, accepting)| accepting.abort());
    let until = Instant::now() + GRACE;
    while doors.iter().any(|(places, _)| places.is_busy()) && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn by_socket(listener: UnixListener, places: Rc<Places>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) if socket::is_ours(&stream) => places.seat(stream, Via::Socket).await,
            Ok(_) => {}
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn by_tcp(listener: TcpListener, places: Rc<Places>) {
    let Ok(at) = listener.local_addr() else { return };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => places.seat(stream, Via::Tcp(at)).await,
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// The connections of one way in.
struct Places {
    office: Arc<Office>,
    router: Router,
    taken: RefCell<Vec<Place>>,
}

struct Place {
    phase: Rc<Cell<Phase>>,
    task: AbortHandle,
}

impl Places {
    fn new(office: &Arc<Office>, router: &Router) -> Rc<Places> {
        Rc::new(Places { office: office.clone(), router: router.clone(), taken: RefCell::default() })
    }

    fn is_busy(&self) -> bool {
        self.taken
            .borrow()
            .iter()
            .any(|place| !place.task.is_finished() && place.phase.get().idle_since().is_none())
    }

    /// Serves a connection, as soon as there is a place for it.
    async fn seat<S: AsyncRead + AsyncWrite + Unpin + 'static>(self: &Rc<Places>, stream: S, via: Via) {
        while !self.has_room() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let phase = Rc::new(Cell::new(Phase::Fresh(Instant::now())));
        let (places, seen) = (self.clone(), phase.clone());
        let task = tokio::task::spawn_local(async move {
            let _counted = Counted::of(&places.office);
            conn::serve(stream, via, seen, places.office.clone(), places.router.clone()).await;
        });
        self.taken.borrow_mut().push(Place { phase, task: task.abort_handle() });
        // What it has to say is heard before the next is let in.
        tokio::task::yield_now().await;
    }

    /// Whether a place is free, or was made free: of those that say nothing, the one that did so for longest goes.
    fn has_room(&self) -> bool {
        let mut taken = self.taken.borrow_mut();
        taken.retain(|place| !place.task.is_finished());
        if taken.len() < CONNECTIONS_MAX {
            return true;
        }
        let silent = taken.iter().enumerate();
        let silent = silent.filter_map(|(at, place)| Some((place.phase.get().idle_since()?, at))).min();
        silent.is_some_and(|(_, at)| {
            taken.swap_remove(at).task.abort();
            true
        })
    }
}

/// Counts a connection for as long as it lives.
struct Counted(Arc<Office>);

impl Counted {
    fn of(office: &Arc<Office>) -> Counted {
        office.traffic.connections.fetch_add(1, Ordering::Relaxed);
        Counted(office.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.traffic.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
