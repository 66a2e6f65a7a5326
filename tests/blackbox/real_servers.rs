//! The promise: what servers of this world serve is stored byte for byte as curl gets it, over HTTP and over TLS, in
//! whatever coding and framing they choose; what has not changed is not fetched again; a head is a head.

use crate::real_support::*;
use crate::support::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What is known beforehand about a server's answers, so that a test of gzip is one.
struct Habits {
    /// Paths and their content coding, where curl and we are served one.
    codings: &'static [(&'static str, &'static str)],
    chunked: &'static [&'static str],
    /// Documents without a length that end with the connection.
    to_the_close: &'static [&'static str],
    version: &'static str,
    /// Of the pages with status 200, how many at least are not sent again when nothing has changed.
    unchanged_min: usize,
}

/// Crawls the site with each driver, and again, and by its heads, and compares everything with what curl gets.
#[track_caller]
fn compare(dir: &TempDir, origin: &str, drivers: &[&str], habits: &Habits) {
    let mut curled = BTreeMap::new();
    let mut unchanged = Vec::new();
    for (path, status) in PAGES {
        let url = format!("{origin}{path}");
        let got = curl(dir, &url, &[]);
        check_habits(habits, path, &got);
        if status == 200 && is_unchanged(dir, &url, &got) {
            unchanged.push(url.clone());
        }
        curled.insert(url, got);
    }
    assert!(unchanged.len() >= habits.unchanged_min, "only {unchanged:?} answer 304 to curl");
    let urls: Vec<String> = curled.keys().cloned().collect();
    for driver in drivers {
        let crawls = TempDir::new();
        let data = crawls.join("data");
        let mut flags = flags(dir);
        flags.extend(["--driver".to_string(), driver.to_string()]);
        let (report, _) = crawl(&data, [&format!("{origin}/")].into_iter().chain(&flags));
        assert_eq!((&report["pages"], &report["pending"]), (&PAGES.len().into(), &0.into()), "{report}");
        check_documents(&data, origin, &curled);

        // An answer without a document has no links: all pages are asked for by name.
        let again = "--again".to_string();
        let (report, _) = crawl(&data, urls.iter().chain(&flags).chain([&again]));
        let again = newest(&data);
        let not_modified = again.values().filter(|record| record.result == "not_modified").count();
        assert_eq!(not_modified, unchanged.len(), "{report}");
        for url in &unchanged {
            assert_eq!((again[url].http_status, again[url].success), (Some(304), true), "{:?}", again[url]);
        }
        for url in unchanged.iter().take(3) {
            assert!(cat(&data, url) == curled[url].body, "{url}: the document is still there");
        }
        stat(&data);

        let heads = crawls.join("heads");
        crawl(&heads, ["--head".to_string()].iter().chain(&urls).chain(&flags));
        let records = newest(&heads);
        for (url, curled) in &curled {
            let record = &records[url];
            assert_eq!((record.http_status, record.bytes), (Some(curled.status), 0), "{record:?}");
            assert!(record.flags.iter().any(|flag| flag == "head_only"), "{record:?}");
        }
    }
}

/// What is stored is what curl got, and nothing else is.
#[track_caller]
fn check_documents(data: &Path, origin: &str, curled: &BTreeMap<String, Curled>) {
    let records = stored(data);
    assert!(records.keys().eq(curled.keys()), "{:?}", records.keys());
    for (path, status) in PAGES {
        let url = format!("{origin}{path}");
        let (record, curled) = (&records[&url], &curled[&url]);
        assert_eq!((record.http_status, curled.status), (Some(status), status), "{record:?}");
        let result = match status {
            200 => ("ok", true),
            301 => ("redirect", false),
            _ => ("http_error", false),
        };
        assert_eq!((&*record.result, record.success), result, "{record:?}");
        assert_eq!(record.bytes, curled.body.len() as u64, "{record:?}");
        assert_eq!(record.sha1, sha1_hex(&curled.body), "{record:?}");
        assert!(cat(data, &url) == curled.body, "{path}: not what curl gets");
        let decoded = record.flags.iter().any(|flag| flag == "decoded");
        assert_eq!(decoded, curled.header("content-encoding").is_some() && record.bytes > 0, "{record:?}");
    }
    assert_eq!(records[&format!("{origin}/deep")].new_url, Some(format!("{origin}/deep/")));
}

/// The store is whole as far as `store stat` can tell.
#[track_caller]
fn stat(data: &Path) {
    let mut command = nephila();
    command.args(["store", "stat", "--data"]).arg(data);
    Running::start(&mut command).wait(PATIENCE).done();
}

/// The server does to this page what the test is about.
#[track_caller]
fn check_habits(habits: &Habits, path: &str, curled: &Curled) {
    let coding = habits.codings.iter().find(|(coded, _)| *coded == path).map(|(_, coding)| *coding);
    assert_eq!(curled.header("content-encoding"), coding, "{path}:\n{}", curled.head);
    let of = |paths: &[&str]| paths.contains(&path);
    let is_chunked = curled.header("transfer-encoding") == Some("chunked");
    if of(habits.chunked) {
        assert!(is_chunked, "{path}:\n{}", curled.head);
    }
    if of(habits.to_the_close) {
        let length = curled.header("content-length");
        assert!(!is_chunked && length.is_none(), "{path}:\n{}", curled.head);
    }
    assert!(curled.head.starts_with(habits.version), "{path}:\n{}", curled.head);
}

/// Whether the server answers 304 to what a crawler knows of a page.
#[track_caller]
fn is_unchanged(dir: &TempDir, url: &str, curled: &Curled) -> bool {
    let mut more = Vec::new();
    for (has, asks) in [("etag", "If-None-Match"), ("last-modified", "If-Modified-Since")] {
        if let Some(value) = curled.header(has) {
            more.extend(["--header".to_string(), format!("{asks}: {value}")]);
        }
    }
    !more.is_empty() && curl(dir, url, &more).status == 304
}

fn origins(http: u16, https: u16) -> [String; 2] {
    [format!("http://{NAME}:{http}"), format!("https://{NAME}:{https}")]
}

#[test]
fn nginx_with_either_driver() {
    let dir = site_dir(&Authority::new());
    let server = nginx(&dir, 2, |ports| {
        format!(
            "gzip on; gzip_min_length 500; gzip_types text/css;
            server {{
                listen 127.0.0.1:{};
                listen 127.0.0.1:{} ssl;
                location = /chunked.html {{ ssi on; gzip off; }}
            }}",
            ports[0], ports[1]
        )
    });
    let habits = Habits {
        codings: &[
            ("/plain.html", "gzip"),
            ("/more.html", "gzip"),
            ("/style.css", "gzip"),
            ("/included.shtml", "gzip"),
            ("/large.html", "gzip"),
            ("/closing.html", "gzip"),
            ("/deep/", "gzip"),
        ],
        chunked: &["/plain.html", "/large.html", "/chunked.html"],
        to_the_close: &[],
        version: "HTTP/1.1",
        unchanged_min: 10,
    };
    for origin in origins(server.ports[0], server.ports[1]) {
        compare(&dir, &origin, &DRIVERS, &habits);
    }
}

#[test]
fn nginx_without_keep_alive() {
    let dir = site_dir(&Authority::new());
    let server = nginx(&dir, 2, |ports| {
        let (http, https) = (ports[0], ports[1]);
        format!("keepalive_timeout 0; server {{ listen 127.0.0.1:{http}; listen 127.0.0.1:{https} ssl; }}")
    });
    let habits =
        Habits { codings: &[], chunked: &[], to_the_close: &[], version: "HTTP/1.1", unchanged_min: 11 };
    for (origin, driver) in origins(server.ports[0], server.ports[1]).iter().zip(DRIVERS) {
        compare(&dir, origin, &[driver], &habits);
    }
}

#[test]
fn apache() {
    let dir = site_dir(&Authority::new());
    let server = RealServer::start(&dir, 3, |ports| {
        let conf = dir.write("apache.conf", apache_conf(dir.path(), ports));
        let mut command = Command::new(program("apache2", "apache2-bin"));
        command.arg("-f").arg(conf).args(["-D", "FOREGROUND"]);
        command
    });
    let habits = Habits {
        codings: &[
            ("/", "gzip"),
            ("/plain.html", "gzip"),
            ("/more.html", "gzip"),
            ("/large.html", "gzip"),
            ("/chunked.html", "gzip"),
            ("/closing.html", "gzip"),
            ("/deep/", "gzip"),
            ("/notes.txt", "br"),
        ],
        chunked: &["/large.html", "/included.shtml"],
        to_the_close: &[],
        version: "HTTP/1.1",
        unchanged_min: 3,
    };
    for origin in origins(server.ports[0], server.ports[1]) {
        compare(&dir, &origin, &["auto"], &habits);
    }
    // The third port answers as a server of 1996 did.
    let old = Habits {
        codings: &[],
        chunked: &[],
        to_the_close: &["/included.shtml"],
        version: "HTTP/1.0",
        ..habits
    };
    compare(&dir, &format!("http://{NAME}:{}", server.ports[2]), &["auto"], &old);
}

fn apache_conf(dir: &Path, ports: &[u16]) -> String {
    let dir = dir.display();
    let modules =
        ["mpm_event", "authz_core", "mime", "dir", "filter", "deflate", "brotli", "include", "env", "ssl"];
    let load =
        |module: &str| format!("LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so\n");
    let load: String = modules.into_iter().map(load).collect();
    let user = if nix::unistd::geteuid().is_root() { "User nobody\nGroup nogroup\n" } else { "" };
    let [http, https, old] = ports else { panic!("three ports") };
    format!(
        "ServerRoot {dir}
ServerName {NAME}
PidFile {dir}/apache.pid
DefaultRuntimeDir {dir}
ErrorLog /dev/stderr
{load}{user}Listen 127.0.0.1:{http}
Listen 127.0.0.1:{https}
Listen 127.0.0.1:{old}
StartServers 1
ServerLimit 2
ThreadsPerChild 8
MaxRequestWorkers 16
KeepAlive On
TypesConfig /dev/null
AddType text/html .html
AddType text/plain .txt
AddType text/css .css
AddType text/x-included .shtml
AddType application/octet-stream .bin
AddOutputFilter INCLUDES .shtml
DocumentRoot {dir}/root
DirectoryIndex index.html
<Directory {dir}/root>
    Require all granted
    Options +Includes
</Directory>
<VirtualHost 127.0.0.1:{http}>
    AddOutputFilterByType DEFLATE text/html
    AddOutputFilterByType BROTLI_COMPRESS text/plain
</VirtualHost>
<VirtualHost 127.0.0.1:{https}>
    AddOutputFilterByType DEFLATE text/html
    AddOutputFilterByType BROTLI_COMPRESS text/plain
    SSLEngine on
    SSLCertificateFile {dir}/cert.pem
    SSLCertificateKeyFile {dir}/key.pem
</VirtualHost>
<VirtualHost 127.0.0.1:{old}>
    KeepAlive Off
    SetEnv downgrade-1.0 1
    SetEnv force-response-1.0 1
</VirtualHost>
"
    )
}

#[test]
fn lighttpd() {
    let dir = site_dir(&Authority::new());
    let server = RealServer::start(&dir, 2, |ports| {
        let path = dir.path().display();
        let conf = format!(
            "server.modules = (\"mod_deflate\", \"mod_openssl\")
server.document-root = \"{path}/root\"
server.upload-dirs = (\"{path}/tmp\")
server.bind = \"127.0.0.1\"
server.port = {}
index-file.names = (\"index.html\")
mimetype.assign = (\".html\" => \"text/html\", \".txt\" => \"text/plain\", \".css\" => \"text/css\")
deflate.mimetypes = (\"text/\")
$HTTP[\"url\"] =~ \"\\.html$\" {{ deflate.allowed-encodings = (\"gzip\") }}
$HTTP[\"url\"] =~ \"\\.txt$\" {{ deflate.allowed-encodings = (\"br\") }}
$HTTP[\"url\"] =~ \"\\.css$\" {{ deflate.allowed-encodings = (\"zstd\") }}
$SERVER[\"socket\"] == \"127.0.0.1:{}\" {{
    ssl.engine = \"enable\"
    ssl.pemfile = \"{path}/cert.pem\"
    ssl.privkey = \"{path}/key.pem\"
}}
",
            ports[0], ports[1]
        );
        let conf = dir.write("lighttpd.conf", conf);
        let mut command = Command::new(program("lighttpd", "lighttpd"));
        command.arg("-D").arg("-f").arg(conf);
        command
    });
    let habits = Habits {
        codings: &[
            ("/", "gzip"),
            ("/deep/", "gzip"),
            ("/plain.html", "gzip"),
            ("/more.html", "gzip"),
            ("/large.html", "gzip"),
            ("/chunked.html", "gzip"),
            ("/closing.html", "gzip"),
            ("/notes.txt", "br"),
            ("/style.css", "zstd"),
            ("/missing.html", "gzip"),
        ],
        chunked: &[],
        to_the_close: &[],
        version: "HTTP/1.1",
        unchanged_min: 10,
    };
    for origin in origins(server.ports[0], server.ports[1]) {
        compare(&dir, &origin, &["auto"], &habits);
    }
}

#[test]
fn haproxy_before_nginx() {
    let dir = site_dir(&Authority::new());
    let behind = nginx(&dir, 1, |ports| {
        format!("server {{ listen 127.0.0.1:{}; location = /chunked.html {{ ssi on; }} }}", ports[0])
    });
    let server = RealServer::start(&dir, 2, |ports| {
        let conf = format!(
            "global
    maxconn 256
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
    compression algo gzip
    compression type text/html
frontend front
    bind 127.0.0.1:{}
    bind 127.0.0.1:{} ssl crt {}
    default_backend back
backend back
    server behind 127.0.0.1:{}
",
            ports[0],
            ports[1],
            dir.join("both.pem").display(),
            behind.ports[0]
        );
        let conf = dir.write("haproxy.conf", conf);
        let mut command = Command::new(program("haproxy", "haproxy"));
        command.arg("-db").arg("-f").arg(conf);
        command
    });
    let habits = Habits {
        codings: &[
            ("/", "gzip"),
            ("/plain.html", "gzip"),
            ("/more.html", "gzip"),
            ("/included.shtml", "gzip"),
            ("/large.html", "gzip"),
            ("/chunked.html", "gzip"),
            ("/closing.html", "gzip"),
            ("/deep/", "gzip"),
        ],
        chunked: &["/large.html", "/chunked.html"],
        to_the_close: &[],
        version: "HTTP/1.1",
        unchanged_min: 3,
    };
    for origin in origins(server.ports[0], server.ports[1]) {
        compare(&dir, &origin, &["auto"], &habits);
    }
}

/// A server written in a script: it is told its root, its ports and its certificate.
fn interpreted(dir: &TempDir, interpreter: &Path, script: &Path) -> RealServer {
    RealServer::start(dir, 2, |ports| {
        let mut command = Command::new(interpreter);
        command.arg(script).arg(dir.join("root")).args(ports.iter().map(u16::to_string));
        command.arg(dir.join("cert.pem")).arg(dir.join("key.pem"));
        command
    })
}

#[test]
fn pythons_http_server() {
    let dir = site_dir(&Authority::new());
    let script = dir.write("serve.py", include_str!("scripts/serve.py"));
    let server = interpreted(&dir, &program("python3", "python3"), &script);
    let habits =
        Habits { codings: &[], chunked: &[], to_the_close: &[], version: "HTTP/1.0", unchanged_min: 10 };
    for origin in origins(server.ports[0], server.ports[1]) {
        compare(&dir, &origin, &["auto"], &habits);
    }
}

#[test]
fn nodes_http_and_https() {
    let dir = site_dir(&Authority::new());
    let script = dir.write("serve.js", include_str!("scripts/serve.js"));
    let server = interpreted(&dir, &program("node", "nodejs"), &script);
    let habits = Habits {
        codings: &[
            ("/", "gzip"),
            ("/plain.html", "gzip"),
            ("/more.html", "gzip"),
            ("/large.html", "gzip"),
            ("/chunked.html", "gzip"),
            ("/closing.html", "gzip"),
            ("/deep/", "gzip"),
            ("/notes.txt", "br"),
            ("/style.css", "zstd"),
            ("/included.shtml", "deflate"),
        ],
        chunked: &["/chunked.html"],
        to_the_close: &["/closing.html"],
        version: "HTTP/1.1",
        unchanged_min: 12,
    };
    for origin in origins(server.ports[0], server.ports[1]) {
        compare(&dir, &origin, &["auto"], &habits);
    }
}
