use super::metrics::{Format, exposition};
use super::now::Now;
use super::office::Office;
use super::problem::{Kind, Problem};
use super::routes::{ROUTES, Route, Verb};
use crate::base::{shown, write_json};
use crate::engine::{
    Ask, Circumstances, ClusterOrder, ClusterReport, CrawlRules, Event, Explained, FEEDS_PER_WORD_MAX,
    FeedWord, Handed, OrderFault, PIECE_LINES_MAX, Reply, State, Status, Taken, index_folder,
};
use crate::limits::URL_BYTES_MAX;
use crate::proto::url::CrawlUrl;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes of a body that are read.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// A question waits no longer for its answer, and URLs no longer for the disk.
const ANSWER_MAX: Duration = Duration::from_secs(2);
const TAKE_MAX: Duration = Duration::from_secs(60);
/// What is kept of why somebody did something.
const REASON_CHARS_MAX: usize = 200;

type Answer = Result<Response, Problem>;

/// Answers a request that was admitted and has come whole.
pub async fn answer(office: Arc<Office>, verb: Verb, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, BODY_BYTES_MAX).await else {
        return Problem::new(Kind::TooLarge, "the body is larger than 1 MiB").into_response();
    };
    let has_none = matches!(verb, Verb::Explain | Verb::Urls | Verb::Feeds | Verb::Pause | Verb::Resume)
        && !office.desk.has_urls();
    let answered = match verb {
        _ if has_none => Err(Problem::new(
            Kind::NotFound,
            "this process has no URLs of its own: ask a crawl or a URL server",
        )),
        Verb::Now => Ok(said(&Now::of(&office, counted(&office).await))),
        Verb::Status => {
            let snapshot = office.desk.snapshot();
            Ok(said(&office.desk.status(&snapshot, counted(&office).await)))
        }
        Verb::Explain => explain(&office, &head).await,
        Verb::Urls => take(&office, &head, body).await,
        Verb::Feeds => feeds(&office, &head, &body).await,
        Verb::Cluster => cluster(&office).map(|cluster| said(&*cluster.get())),
        Verb::Owner => owner(&office, &head).await,
        Verb::Order => order(&office, &head, &body),
        Verb::Verify => cluster(&office).map(|cluster| said(&json!({ "id": cluster.verify().ask() }))),
        Verb::Verified => cluster(&office).map(|cluster| said(&*cluster.verify().get())),
        Verb::Safe => cluster(&office).map(|cluster| said(&json!({ "id": cluster.ask_safe() }))),
        Verb::Pause => pause(&office, &head, &body, true).await,
        Verb::Resume => pause(&office, &head, &body, false).await,
        Verb::Stop => stop(&office, &head, &body),
        Verb::Metrics => Ok(metrics(&office, &head)),
        Verb::Health => Ok(said(&json!({ "pid": std::process::id() }))),
        Verb::Ready => match office.desk.readings().state {
            State::Starting => Err(Problem::new(Kind::Busy, "the process is starting")),
            State::Draining => Err(Problem::new(Kind::Busy, "the process is stopping")),
            state => Ok(said(&json!({ "state": state.name() }))),
        },
        Verb::Problem => problem(head.uri.path()),
    };
    answered.unwrap_or_else(IntoResponse::into_response)
}

/// JSON that is safe to look at, in a terminal and in a page.
pub fn json_of(value: &impl Serialize) -> String {
    let mut json = Vec::new();
    // A value of ours always can be written.
    let _ = write_json(&mut json, value);
    json.push(b'\n');
    // It stands in texts only, and reads back as it was.
    String::from_utf8_lossy(&json).replace('<', "\\u003c")
}

fn said(value: &impl Serialize) -> Response {
    of_type("application/json", json_of(value))
}

fn of_type(content_type: &'static str, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn busy() -> Problem {
    Problem::new(Kind::Busy, "no answer within 2 s: the node is busy, or ending")
}

async fn counted(office: &Office) -> Option<crate::doc_index::IndexStats> {
    match office.desk.has_urls() {
        true => match office.ask(Ask::Count, ANSWER_MAX).await {
            Some(Reply::Counted(stats)) => Some(stats),
            _ => None,
        },
        false => None,
    }
}

/// A parameter of the query.
fn parameter(head: &Parts, name: &str) -> Option<String> {
    let query = head.uri.query().unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
}

async fn explain(office: &Office, head: &Parts) -> Answer {
    let url = url_of(head)?;
    let looked = look(office, &url).await?;
    let there = match looked.target() {
        Some(target) => {
            let status = look(office, &target).await?;
            Some((target, status))
        }
        None => None,
    };
    let rules = rules(office).await?;
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let around = Circumstances { rules: &rules, now_ms, is_paused: office.desk.snapshot().is_paused };
    Ok(said(&Explained::of(&url, looked, there, &around)))
}

/// The URL that a request is about.
fn url_of(head: &Parts) -> Result<CrawlUrl, Problem> {
    let Some(url) = parameter(head, "url") else {
        let detail = format!("name the URL: {}?url=https%3A%2F%2Fexample.org%2F", head.uri.path());
        return Err(Problem::new(Kind::BadRequest, &detail));
    };
    CrawlUrl::parse(&url).map_err(|e| {
        let what = format!("\"{}\" is no URL to crawl: {e}", shown(&url, 200));
        Problem::new(Kind::BadValue, &what).with(json!({ "key": "url", "value": shown(&url, URL_BYTES_MAX) }))
    })
}

fn cluster(office: &Office) -> Result<&ClusterReport, Problem> {
    let detail = "this process is no node of a cluster: nephila node starts one";
    office.desk.cluster().ok_or_else(|| Problem::new(Kind::NotFound, detail))
}

/// Takes an order for the cluster. It is done when the table says so.
fn order(office: &Office, head: &Parts, body: &[u8]) -> Answer {
    let cluster = cluster(office)?;
    has_type(head, &["application/json", "text/plain"])?;
    let order: ClusterOrder = serde_json::from_slice(body).map_err(|e| {
        let what =
            format!("{e}: send {{\"do\":\"drain\",\"node\":3}}, or forget, or freeze or thaw without a node");
        Problem::new(Kind::BadValue, &shown(&what, 400))
    })?;
    match cluster.order(order) {
        Ok(()) => Ok(said(&order)),
        Err(OrderFault::AlreadySo(why)) => Err(Problem::new(Kind::AlreadySo, &why)),
        Err(OrderFault::NotNow(why)) => Err(Problem::new(Kind::BadValue, &why)),
    }
}

/// Who owns a URL, in the form that the crawl gives to URLs.
async fn owner(office: &Office, head: &Parts) -> Answer {
    let cluster = cluster(office)?;
    let (url, rules) = (url_of(head)?, rules(office).await?);
    let mut scratch = String::new();
    let owner = cluster.owner(rules.doc_index.canon().apply(url.as_str(), &mut scratch));
    let detail = "this node has no table yet: it is not taken in by a cluster";
    owner.map(|owner| said(&owner)).ok_or_else(|| Problem::new(Kind::Busy, detail))
}

async fn look(office: &Office, url: &CrawlUrl) -> Result<Status, Problem> {
    match office.ask(Ask::Explain(url.clone()), ANSWER_MAX).await {
        Some(Reply::Explained(looked)) => Ok(*looked),
        _ => Err(busy()),
    }
}

/// The rules of the crawl: as they were noted last, or as it began.
async fn rules(office: &Office) -> Result<CrawlRules, Problem> {
    let noted = match office.data.clone() {
        Some(data) => {
            tokio::task::spawn_blocking(move || CrawlRules::read(&index_folder(&data)).ok().flatten())
                .await
                .ok()
                .flatten()
        }
        None => None,
    };
    noted.or_else(|| office.desk.rules().cloned()).ok_or_else(busy)
}

/// Takes in URLs, one a line. All that are counted are on disk.
async fn take(office: &Office, head: &Parts, body: Bytes) -> Answer {
    let are_seeds = match parameter(head, "as").as_deref() {
        None | Some("import") => false,
        Some("seeds") => true,
        Some(other) => {
            let what = format!("as={} is not known: seeds and import are", shown(other, 60));
            return Err(Problem::new(Kind::BadValue, &what).with(json!({ "key": "as" })));
        }
    };
    has_type(head, &["text/plain", "application/x-ndjson"])?;
    let text = String::from_utf8_lossy(&body);
    let lines: Vec<&str> = text.lines().collect();
    let mut taken = Taken::default();
    if let Some(cause) = office.desk.waiting_for() {
        return Err(Problem::new(Kind::Busy, &format!("nothing is taken now: {cause}")));
    }
    for (number, piece) in lines.chunks(PIECE_LINES_MAX).enumerate() {
        let handed = Handed::read(&piece.join("\n"), are_seeds).unwrap_or(Handed {
            are_seeds,
            lines: Vec::new(),
            bad: piece.len() as u64,
        });
        match office.ask(Ask::Take(Box::new(handed)), TAKE_MAX).await {
            Some(Reply::Taken(more)) => taken.add(&more),
            _ => {
                let detail =
                    "no word yet: the crawl is ending, or waits for its disk; it may still take them";
                let lines = number * PIECE_LINES_MAX;
                return Err(Problem::new(Kind::Busy, detail).with(json!({ "lines_taken": lines })));
            }
        }
    }
    Ok(said(&taken))
}

/// Does something with feeds. What is told as done is on disk.
async fn feeds(office: &Office, head: &Parts, body: &[u8]) -> Answer {
    has_type(head, &["application/json", "text/plain"])?;
    let word: FeedWord = serde_json::from_slice(body).map_err(|e| {
        let what =
            format!("{e}: send {{\"do\":\"poll\",\"ids\":[7]}}, or rm, pause, resume, or add with feeds");
        Problem::new(Kind::BadValue, &shown(&what, 400))
    })?;
    if word.feeds() > FEEDS_PER_WORD_MAX {
        let what = format!("at most {FEEDS_PER_WORD_MAX} feeds at once");
        return Err(Problem::new(Kind::TooLarge, &what));
    }
    if let Some(cause) = office.desk.waiting_for() {
        return Err(Problem::new(Kind::Busy, &format!("nothing is taken now: {cause}")));
    }
    match office.ask(Ask::Feeds(Box::new(word)), TAKE_MAX).await {
        Some(Reply::Feeds(Ok(Some(told)))) => Ok(said(&told)),
        Some(Reply::Feeds(Ok(None))) => Err(Problem::new(
            Kind::NotFound,
            "this crawl has no feeds: add one first, with nephila feeds add",
        )),
        Some(Reply::Feeds(Err(cause))) => {
            Err(Problem::new(Kind::Busy, &format!("the disk refused it: {cause}")))
        }
        _ => Err(Problem::new(Kind::Busy, "no word yet: the crawl is ending, or waits for its disk")),
    }
}

/// Whether a body is of one of these types; one that says nothing is of the first.
fn has_type(head: &Parts, types: &[&str]) -> Result<(), Problem> {
    let given = head.headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let given = given.and_then(|given| given.split(';').next()).unwrap_or(types[0]).trim();
    match types.iter().any(|known| known.eq_ignore_ascii_case(given)) {
        true => Ok(()),
        false => {
            let what = format!("Content-Type is {}: send {}", shown(given, 100), types.join(" or "));
            Err(Problem::new(Kind::WrongType, &what))
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Told {
    reason: Option<String>,
}

/// Why somebody does something, as it is shown: empty, or in brackets.
fn reason(head: &Parts, body: &[u8]) -> Result<String, Problem> {
    if body.is_empty() {
        return Ok(String::new());
    }
    has_type(head, &["application/json"])?;
    let value: serde_json::Value = serde_json::from_slice(body)
        .map_err(|e| Problem::new(Kind::BadRequest, &format!("the body is no JSON: {e}")))?;
    let told: Told = serde_json::from_value(value)
        .map_err(|e| Problem::new(Kind::BadValue, &format!("{e}: send {{\"reason\":\"…\"}}, or no body")))?;
    Ok(told.reason.map_or(String::new(), |reason| format!(" ({})", shown(&reason, REASON_CHARS_MAX))))
}

async fn pause(office: &Office, head: &Parts, body: &[u8], paused: bool) -> Answer {
    let reason = reason(head, body)?;
    let Some(Reply::Paused { changed }) = office.ask(Ask::Pause(paused), ANSWER_MAX).await else {
        return Err(busy());
    };
    let state = if paused { "paused" } else { "running" };
    let open = office.desk.snapshot().open;
    let now = json!({ "state": state, "pid": std::process::id(), "open": open });
    if !changed {
        let is = if paused { "it is paused already" } else { "it is not paused" };
        return Err(Problem::new(Kind::AlreadySo, is).with(now));
    }
    if !reason.is_empty() {
        let fields = vec![("state", state.into()), ("reason", (&reason).into())];
        office.desk.note(Event::ReasonGiven, fields, format!("{state}:{reason}"));
    }
    Ok(said(&now))
}

fn stop(office: &Office, head: &Parts, body: &[u8]) -> Answer {
    let reason = reason(head, body)?;
    let now = json!({ "state": "stopping", "pid": std::process::id() });
    match office.desk.stop(&reason) {
        true => Ok(said(&now)),
        false => Err(Problem::new(Kind::AlreadySo, "it is stopping already").with(now)),
    }
}

fn problem(path: &str) -> Answer {
    let slug = path.rsplit('/').next().unwrap_or_default();
    match Kind::ALL.iter().find(|kind| kind.slug() == slug) {
        Some(kind) => {
            let text = format!("{} ({}):{}\n", kind.title(), kind.status(), kind.about());
            Ok(of_type("text/plain; charset=utf-8", text))
        }
        None => Err(Problem::new(Kind::NotFound, "there is no such problem")),
    }
}

/// The figures of the process, in the format that was asked for.
fn metrics(office: &Office, head: &Parts) -> Response {
    let accepts: Vec<&str> =
        head.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let format = Format::asked_for(&accepts.join(", "));
    let mut beside = (office.beside)();
    beside.is_among_nodes = office.desk.cluster().is_some();
    let is_of_it = |handler: &str| {
        let route = ROUTES.iter().find(|route| route.name == handler);
        beside.is_among_nodes || !route.is_some_and(Route::is_of_cluster)
    };
    let requests = office.traffic.requests().filter(|(handler, ..)| is_of_it(handler));
    beside.admin_requests = requests.collect();
    beside.admin_connections = office.traffic.connections.load(Ordering::Relaxed);
    of_type(format.content_type(), exposition(&office.desk.readings(), &beside, format))
}
