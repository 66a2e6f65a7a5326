use super::answers;
use super::office::Office;
use super::problem::{Kind, Problem};
use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use std::sync::Arc;

/// A path, and what is done there.
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    /// As requests are counted by.
    pub name: &'static str,
    pub verb: Verb,
    /// Everybody may read it on loopback.
    pub is_open: bool,
}

impl Route {
    /// Only a node of a cluster has an answer.
    pub fn is_of_cluster(&self) -> bool {
        let of_cluster = [Verb::Cluster, Verb::Owner, Verb::Order, Verb::Verify, Verb::Verified, Verb::Safe];
        of_cluster.contains(&self.verb)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Now,
    Status,
    Explain,
    Urls,
    Feeds,
    Cluster,
    Owner,
    Order,
    Verify,
    Verified,
    Safe,
    Pause,
    Resume,
    Stop,
    Metrics,
    Health,
    Ready,
    Problem,
}

/// Everything that can be asked. The router, the guard, the tests of who may ask and the check of `openapi.json` read it.
pub const ROUTES: [Route; 18] = [
    route("GET", "/api/v1/now", "now", Verb::Now),
    route("GET", "/api/v1/status", "status", Verb::Status),
    route("GET", "/api/v1/explain", "explain", Verb::Explain),
    route("POST", "/api/v1/urls", "urls", Verb::Urls),
    route("POST", "/api/v1/feeds", "feeds", Verb::Feeds),
    route("GET", "/api/v1/cluster", "cluster", Verb::Cluster),
    route("GET", "/api/v1/cluster/owner", "owner", Verb::Owner),
    route("POST", "/api/v1/cluster/order", "order", Verb::Order),
    route("POST", "/api/v1/cluster/verify", "verify", Verb::Verify),
    route("GET", "/api/v1/cluster/verified", "verified", Verb::Verified),
    route("POST", "/api/v1/cluster/safe", "safe", Verb::Safe),
    route("POST", "/api/v1/pause", "pause", Verb::Pause),
    route("POST", "/api/v1/resume", "resume", Verb::Resume),
    route("POST", "/api/v1/stop", "stop", Verb::Stop),
    open("/metrics", "metrics", Verb::Metrics),
    open("/healthz", "healthz", Verb::Health),
    open("/readyz", "readyz", Verb::Ready),
    route("GET", "/problems/{kind}", "problems", Verb::Problem),
];

const fn route(method: &'static str, path: &'static str, name: &'static str, verb: Verb) -> Route {
    Route { method, path, name, verb, is_open: false }
}

const fn open(path: &'static str, name: &'static str, verb: Verb) -> Route {
    Route { method: "GET", path, name, verb, is_open: true }
}

impl Route {
    /// The route that a request takes.
    pub fn of(method: &str, path: &str) -> Option<&'static Route> {
        let method = if method == "HEAD" { "GET" } else { method };
        let is = |route: &&Route| {
            route.method == method
                && match route.path.split_once('{') {
                    Some((stem, _)) => path.strip_prefix(stem).is_some_and(|rest| !rest.is_empty()),
                    None => route.path == path,
                }
        };
        ROUTES.iter().find(is)
    }
}

/// What answers a request that was admitted.
pub fn router(office: Arc<Office>) -> Router {
    let mut router = Router::new();
    for route in &ROUTES {
        let verb = route.verb;
        let handler =
            move |State(office): State<Arc<Office>>, request: Request| answers::answer(office, verb, request);
        let methods = if route.method == "POST" { post(handler) } else { get(handler) };
        router = router.route(route.path, methods);
    }
    router.fallback(not_found).method_not_allowed_fallback(wrong_method).with_state(office)
}

async fn not_found() -> Response {
    let detail = "there is nothing under this path: nephila help protocols lists what there is";
    Problem::new(Kind::NotFound, detail).into_response()
}

async fn wrong_method() -> Response {
    let detail = "this path takes another method: the header Allow names it";
    Problem::new(Kind::WrongMethod, detail).into_response()
}
