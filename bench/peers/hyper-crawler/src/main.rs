//! A crawl of one site as one writes it in an afternoon: `hyper-crawler URL CONNECTIONS DIR`.
//!
//! Every connection is a task that takes a URL from one queue, asks for it, reads its links as it comes, and appends it to a file,
//! compressed. There is no index on disk, no log, no sync, no robots.txt and no pause.

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use lol_html::{HtmlRewriter, Settings, element};
use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::rc::Rc;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use url::Url;

type Failure = Box<dyn Error>;

/// What all tasks share.
struct Crawl {
    seen: HashSet<String>,
    queue: VecDeque<Url>,
    /// Tasks that have a page.
    busy: usize,
    fetched: Vec<String>,
    file: BufWriter<File>,
}

struct Shared {
    crawl: RefCell<Crawl>,
    changed: Notify,
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, dir] = args.as_slice() else { return Err("hyper-crawler URL CONNECTIONS DIR".into()) };
    let start = Url::parse(url)?;
    let file = BufWriter::with_capacity(1 << 20, File::create(format!("{dir}/pages.lz4"))?);
    let crawl = Crawl {
        seen: HashSet::from([start.to_string()]),
        queue: VecDeque::from([start.clone()]),
        busy: 0,
        fetched: Vec::new(),
        file,
    };
    let shared = Rc::new(Shared { crawl: RefCell::new(crawl), changed: Notify::new() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let tasks = tokio::task::LocalSet::new();
    for _ in 0..connections.parse::<usize>()? {
        let (shared, start) = (shared.clone(), start.clone());
        tasks.spawn_local(async move {
            if let Err(failure) = work(&shared, &start).await {
                eprintln!("hyper-crawler: {failure}");
            }
        });
    }
    runtime.block_on(tasks);
    let mut crawl = shared.crawl.borrow_mut();
    crawl.file.flush()?;
    println!("{}", crawl.fetched.join("\n"));
    Ok(())
}

/// Fetches until nothing is left and nobody is about to find more.
async fn work(shared: &Shared, start: &Url) -> Result<(), Failure> {
    let mut connection = None;
    loop {
        // Asked for before the look at the queue, so that no change is missed.
        let changed = shared.changed.notified();
        let next = {
            let mut crawl = shared.crawl.borrow_mut();
            let next = crawl.queue.pop_front();
            crawl.busy += usize::from(next.is_some());
            match next {
                None if crawl.busy == 0 => break,
                next => next,
            }
        };
        let Some(url) = next else {
            changed.await;
            continue;
        };
        let got = fetch(&mut connection, start, &url).await;
        let mut crawl = shared.crawl.borrow_mut();
        crawl.busy -= 1;
        match got {
            Ok(Some(page)) => crawl.keep(&url, &page)?,
            Ok(None) => {}
            Err(failure) => {
                eprintln!("hyper-crawler: {url}: {failure}");
                connection = None;
            }
        }
        drop(crawl);
        shared.changed.notify_waiters();
    }
    shared.changed.notify_waiters();
    Ok(())
}

/// A page, if it is one.
async fn fetch(
    connection: &mut Option<SendRequest<Empty<Bytes>>>,
    start: &Url,
    url: &Url,
) -> Result<Option<Vec<u8>>, Failure> {
    let sender = match connection {
        Some(sender) if !sender.is_closed() => sender,
        _ => {
            let host = start.host_str().ok_or("a URL has a host")?;
            let stream = TcpStream::connect((host, start.port_or_known_default().unwrap_or(80))).await?;
            let (sender, driver) = handshake(TokioIo::new(stream)).await?;
            tokio::task::spawn_local(driver);
            connection.insert(sender)
        }
    };
    sender.ready().await?;
    let request = Request::get(url.path()).header("Host", start.authority()).body(Empty::new())?;
    let response = sender.send_request(request).await?;
    let is_page = response.status() == StatusCode::OK
        && response.headers().get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let body = response.into_body().collect().await?.to_bytes();
    Ok(is_page.then(|| body.to_vec()))
}

impl Crawl {
    fn keep(&mut self, url: &Url, page: &[u8]) -> Result<(), Failure> {
        let mut links = Vec::new();
        let handler = element!("a[href]", |tag| {
            links.extend(tag.get_attribute("href"));
            Ok(())
        });
        let settings = Settings { element_content_handlers: vec![handler], ..Settings::default() };
        let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
        rewriter.write(page)?;
        rewriter.end()?;
        for link in links {
            let Ok(mut found) = url.join(&link) else { continue };
            found.set_fragment(None);
            if found.origin() == url.origin() && !self.seen.contains(found.as_str()) {
                self.seen.insert(found.to_string());
                self.queue.push_back(found);
            }
        }
        let packed = lz4_flex::block::compress(page);
        self.file.write_all(&(packed.len() as u32).to_le_bytes())?;
        self.file.write_all(&packed)?;
        self.fetched.push(url.path().to_string());
        Ok(())
    }
}
