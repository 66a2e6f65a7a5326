use crate::base::rfc3339;
use crate::engine::inspect::crawl_rules::CrawlRules;
use crate::engine::inspect::explain::Explanation;
use crate::engine::inspect::status::Status;
use crate::proto::url::CrawlUrl;
use serde::Serialize;

/// The whole answer about a URL, for machines and for people: the object of `nephila explain --json`.
#[derive(Serialize)]
pub struct Explained {
    /// In normal form.
    pub url: String,
    /// What the page says it should be known by.
    pub canonical: Option<String>,
    #[serde(flatten)]
    pub answer: Said,
    pub known: bool,
    pub redirect: Option<Said>,
    pub pages_per_host: u32,
    pub pages_per_domain: u32,
    pub query_variants_max: u32,
    #[serde(flatten)]
    pub status: Status,
}

#[derive(Serialize)]
pub struct Said {
    /// Of where a redirect leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    pub answer: &'static str,
    pub said: String,
    /// It is not fetched, and by these rules never will be.
    #[serde(skip)]
    pub is_no: bool,
}

/// What an answer depends on besides the URL.
pub struct Circumstances<'a> {
    pub rules: &'a CrawlRules,
    pub now_ms: u64,
    /// The crawl runs, and is paused.
    pub is_paused: bool,
}

impl Explained {
    /// `there` is where a redirect leads, and what was found out about that.
    pub fn of(
        url: &CrawlUrl,
        status: Status,
        there: Option<(CrawlUrl, Status)>,
        around: &Circumstances<'_>,
    ) -> Explained {
        let dossier = status.dossier.as_ref();
        let limits = &around.rules.doc_index;
        Explained {
            url: url.to_string(),
            canonical: dossier.and_then(|dossier| dossier.canonical.clone()),
            answer: Said::of(None, &status, around),
            known: dossier.is_some(),
            redirect: there.map(|(url, status)| Said::of(Some(url.to_string()), &status, around)),
            pages_per_host: limits.pages_per_host,
            pages_per_domain: limits.pages_per_domain,
            query_variants_max: limits.query_variants_max,
            status,
        }
    }
}

impl Said {
    /// While a crawl is paused, what may be fetched waits for nothing else.
    fn of(url: Option<String>, looked: &Status, around: &Circumstances<'_>) -> Said {
        let Explanation { answer, mut said } = Explanation::of(looked, around.rules, &rfc3339(around.now_ms));
        if answer.is_next() && looked.live && around.is_paused {
            said = format!("the crawl is paused (nephila resume goes on); {said}");
        }
        Said { url, answer: answer.name(), said, is_no: answer.is_no() }
    }
}
