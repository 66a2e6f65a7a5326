use postgres::Config;
use postgres::config::{Host, SslMode};
use std::fmt;
use std::time::Duration;

/// Where the database is. Shown without its password, in errors and by `Debug` too.
#[derive(Clone)]
pub struct DatabaseUrl {
    config: Config,
    shown: String,
}

const CONNECT_MAX: Duration = Duration::from_secs(2);
/// A connection whose other end no longer acknowledges is given up after this long.
const DEAD_AFTER: Duration = Duration::from_secs(15);

impl DatabaseUrl {
    /// `postgres://user:password@host:port/name`, or `host=/run/postgresql dbname=name`.
    pub fn parse(text: &str) -> Result<DatabaseUrl, String> {
        let example = "postgres://USER:PASSWORD@HOST/NAME, or host=/run/postgresql user=USER dbname=NAME";
        // The parser's own words may hold pieces of the text, and a piece may be the password.
        let mut config: Config = text
            .parse()
            .map_err(|_| format!("this is no address of a PostgreSQL database: write {example}"))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(format!("the address of the database names no host: write {example}"));
        }
        if config.get_ssl_mode() == SslMode::Require {
            return Err("the database is asked without TLS: leave out sslmode, and reach it over a socket, \
                        loopback or a network of your own"
                .to_string());
        }
        let shown = shown(&config);
        config
            .ssl_mode(SslMode::Disable)
            .connect_timeout(CONNECT_MAX)
            .tcp_user_timeout(DEAD_AFTER)
            .keepalives_idle(DEAD_AFTER);
        Ok(DatabaseUrl { config, shown })
    }

    /// How to connect, as whom among its other clients.
    pub(crate) fn config(&self, application: &str) -> Config {
        let mut config = self.config.clone();
        config.application_name(application);
        config
    }
}

fn shown(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => config.get_hostaddrs().first().map(ToString::to_string).unwrap_or_default(),
    };
    let port = config.get_ports().first().filter(|port| **port != 5432);
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let name = config.get_dbname().or(config.get_user()).unwrap_or_default();
    crate::base::shown(&format!("{host}{port}/{name}"), 200)
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({})", self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_shown_nowhere() {
        let url = DatabaseUrl::parse("postgres://nephila:geheim@127.0.0.1:6543/crawl").unwrap();
        assert_eq!(url.to_string(), "127.0.0.1:6543/crawl");
        assert!(!format!("{url:?}").contains("geheim"));
        for bad in [
            "postgres://nephila:geheim@db/crawl?sslmode=require",
            "postgres://nephila:geheim@db:port/crawl",
            "postgres://nephila:geheim@db/crawl?geheim=1",
            "host=db password=geheim geheim",
            "password=geheim",
            "geheim",
            "",
        ] {
            let error = DatabaseUrl::parse(bad).unwrap_err();
            assert!(!error.contains("geheim"), "{error}");
        }
    }

    #[test]
    fn a_socket_is_an_address_too() {
        let url = DatabaseUrl::parse("host=/run/postgresql user=nephila dbname=crawl").unwrap();
        assert_eq!(url.to_string(), "/run/postgresql/crawl");
    }
}
