//! The promise: two masters on one PostgreSQL agree on every domain, miss no change, and wait for nobody: a database that
//! is away, slow or of another shape is named as such, and used again when it is back.

use crate::postgres_server::PostgresServer;
use crate::support::*;
use nephila::engine::{DatabaseUrl, Postgres};
use nephila::master::{By, DatabaseError, MapRow, MemoryTable, PartnerDomain, ServerId};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn row(domain: &str, server: u16) -> MapRow {
    let (server, since_s) = (ServerId(server), 1_311_797_321);
    MapRow { domain: domain.into(), server, moving_to: None, page: 2_310, since_s, by: By::Rule, fence: 0 }
}

fn table(server: &PostgresServer) -> Postgres {
    Postgres::start(DatabaseUrl::parse(&server.address()).unwrap()).unwrap()
}

/// The answer of a database that is coming back: it is tried again after a pause.
fn once_back<T>(mut ask: impl FnMut() -> Result<T, DatabaseError>) -> T {
    wait_for("the database is back", PATIENCE, || ask().ok())
}

fn names(rows: &[MapRow]) -> Vec<&str> {
    let mut names: Vec<&str> = rows.iter().map(|row| &*row.domain).collect();
    names.sort_unstable();
    names
}

#[track_caller]
fn away<T: std::fmt::Debug>(answer: Result<T, DatabaseError>) {
    assert!(matches!(answer, Err(DatabaseError::Away(_))), "{answer:?}");
}

#[track_caller]
fn shape<T: std::fmt::Debug>(answer: Result<T, DatabaseError>, column: &str) {
    assert!(matches!(&answer, Err(DatabaseError::Schema(why)) if why.contains(column)), "{answer:?}");
}

/// What holds for every table, in memory or in PostgreSQL.
fn keeps_to_the_contract(a: &mut dyn PartnerDomain, b: &mut dyn PartnerDomain) {
    assert_eq!(a.changes().unwrap(), []);
    let settled = a.settle(&[row("b.ru", 1), row("a.ru", 1), row("b.ru", 3)]).unwrap();
    assert_eq!(settled, [row("b.ru", 1), row("a.ru", 1), row("b.ru", 1)]);
    let settled = b.settle(&[row("c.ru", 2), row("b.ru", 2)]).unwrap();
    assert_eq!(settled, [row("c.ru", 2), row("b.ru", 1)]);
    assert_eq!(b.settle(&[]).unwrap(), []);
    assert_eq!(names(&a.changes().unwrap()), ["a.ru", "b.ru", "c.ru"]);
    assert_eq!(names(&b.changes().unwrap()), ["a.ru", "b.ru", "c.ru"]);
    assert_eq!((a.changes().unwrap(), b.changes().unwrap()), (vec![], vec![]));

    let moving = MapRow { moving_to: Some(ServerId(2)), fence: 1, by: By::Person, ..row("a.ru", 1) };
    assert!(b.change(&moving, 0).unwrap());
    assert!(!a.change(&moving, 0).unwrap());
    assert_eq!((a.changes().unwrap(), b.changes().unwrap()), (vec![moving.clone()], vec![moving]));

    assert_eq!(a.handover("a.ru", 1).unwrap(), None);
    a.keep_handover("a.ru", 1, b"URL 1\n\0\xff").unwrap();
    b.keep_handover("a.ru", 1, b"later").unwrap();
    assert_eq!(b.handover("a.ru", 1).unwrap().unwrap(), b"URL 1\n\0\xff");
    assert_eq!(b.handover("a.ru", 2).unwrap(), None);
    b.keep_handover("a.ru", 3, b"").unwrap();
    assert_eq!((a.handover("a.ru", 1).unwrap(), a.handover("a.ru", 3).unwrap()), (None, Some(vec![])));
}

#[test]
fn a_table_in_memory_and_one_in_postgresql_do_the_same() {
    let memory = MemoryTable::default();
    keeps_to_the_contract(&mut memory.view(), &mut memory.view());
    let server = PostgresServer::start();
    keeps_to_the_contract(&mut table(&server), &mut table(&server));
}

#[test]
fn two_masters_propose_ten_thousand_domains_at_once_and_read_one_winner_each() {
    const DOMAINS: u32 = 10_000;
    let server = PostgresServer::start();
    // Both find the tables missing.
    let propose = |number: u16| {
        let mut table = table(&server);
        let mut proposals: Vec<MapRow> =
            (0..DOMAINS).map(|n| row(&format!("d{n}.example"), number)).collect();
        if number == 2 {
            proposals.reverse();
        }
        move || {
            let settled = once_back(|| table.settle(&proposals));
            assert_eq!(settled.len(), proposals.len());
            let same =
                settled.iter().zip(&proposals).all(|(settled, proposed)| settled.domain == proposed.domain);
            assert!(same, "in the order of the proposals");
            let seen = once_back(|| table.changes());
            (settled, seen, table)
        }
    };
    let (one, two) = (propose(1), propose(2));
    let (one, two) = std::thread::scope(|scope| {
        let (one, two) = (scope.spawn(one), scope.spawn(two));
        (one.join().unwrap(), two.join().unwrap())
    });
    let winners = |rows: &[MapRow]| -> BTreeMap<Box<str>, ServerId> {
        rows.iter().map(|row| (row.domain.clone(), row.server)).collect()
    };
    assert_eq!(winners(&one.0), winners(&two.0));
    for (settled, mut seen, mut table) in [one, two] {
        seen.extend(table.changes().unwrap());
        assert_eq!(winners(&seen), winners(&settled), "every change is seen");
    }
}

#[test]
fn a_row_that_is_committed_late_is_seen_and_so_is_one_that_a_person_wrote() {
    let server = PostgresServer::start();
    let (mut a, mut b) = (table(&server), table(&server));
    assert_eq!((a.changes().unwrap(), b.changes().unwrap()), (vec![], vec![]));

    let mut slow = server.session();
    let mut open = slow.transaction().unwrap();
    open.execute("INSERT INTO partner_domain (domain, server) VALUES ('late.ru', 4)", &[]).unwrap();
    a.settle(&[row("early.ru", 1)]).unwrap();
    for table in [&mut a, &mut b] {
        assert_eq!(names(&table.changes().unwrap()), ["early.ru"]);
        assert_eq!(table.changes().unwrap(), [], "told once, although something is open");
    }
    open.commit().unwrap();
    for table in [&mut a, &mut b] {
        let rows = table.changes().unwrap();
        assert_eq!((names(&rows), rows[0].server, rows[0].by), (vec!["late.ru"], ServerId(4), By::Import));
    }
    let by_hand = "UPDATE partner_domain SET server = 9 WHERE domain = 'early.ru'";
    assert_eq!(slow.execute(by_hand, &[]).unwrap(), 1);
    for table in [&mut a, &mut b] {
        let rows = table.changes().unwrap();
        assert_eq!((rows.len(), rows[0].server, rows[0].fence), (1, ServerId(9), 1));
    }
}

#[test]
fn a_database_that_goes_away_is_away_and_is_used_when_it_is_back() {
    let mut server = PostgresServer::start();
    let mut table = table(&server);
    table.settle(&[row("a.ru", 1)]).unwrap();
    assert_eq!(names(&table.changes().unwrap()), ["a.ru"]);

    server.signal(Signal::SIGSTOP);
    let asked = Instant::now();
    away(table.settle(&[row("b.ru", 1)]));
    away(table.changes());
    assert!(asked.elapsed() < Duration::from_secs(30), "each waits for two seconds");
    server.signal(Signal::SIGCONT);
    assert_eq!(once_back(|| table.settle(&[row("b.ru", 2)]))[0].server, ServerId(1), "the late ask counted");
    assert_eq!(names(&once_back(|| table.changes())), ["b.ru"]);

    server.kill();
    away(table.settle(&[row("c.ru", 1)]));
    away(table.changes());
    server.run();
    assert_eq!(once_back(|| table.settle(&[row("a.ru", 2)]))[0].server, ServerId(1));
    assert_eq!(
        names(&once_back(|| table.changes())),
        ["a.ru", "b.ru"],
        "of a new connection all rows are told"
    );

    server.kill();
    server.run();
    table.settle(&[row("d.ru", 1)]).expect("a connection that was lost while nobody asked is made again");
}

#[test]
fn a_slow_database_holds_nobody_up_and_its_late_answer_is_used() {
    let server = PostgresServer::start();
    let (mut a, mut b) = (table(&server), table(&server));
    assert_eq!((a.changes().unwrap(), b.changes().unwrap()), (vec![], vec![]));
    let mut other = server.session();
    let mut open = other.transaction().unwrap();
    open.batch_execute("LOCK TABLE partner_domain IN EXCLUSIVE MODE").unwrap();
    away(a.settle(&[row("a.ru", 1)]));
    assert_eq!(b.changes().unwrap(), [], "who only reads is not held up");
    // The row of another, committed before the lock goes, is first.
    open.execute("INSERT INTO partner_domain (domain, server) VALUES ('a.ru', 3)", &[]).unwrap();
    open.commit().unwrap();
    assert_eq!(once_back(|| a.settle(&[row("a.ru", 1)]))[0].server, ServerId(3));

    // An answer to another question comes while it is waited for.
    other
        .batch_execute("CREATE RULE slow AS ON UPDATE TO partner_domain DO ALSO SELECT pg_sleep(3)")
        .unwrap();
    let moving = MapRow { moving_to: Some(ServerId(2)), fence: 1, ..row("a.ru", 3) };
    away(a.change(&moving, 0));
    let told = once_back(|| a.changes());
    assert_eq!(told.last().unwrap().moving_to, Some(ServerId(2)));
}

#[test]
fn rows_that_name_no_server_are_told_and_harm_no_other() {
    let server = PostgresServer::start();
    let mut table = table(&server);
    table.settle(&[row("good.ru", 1)]).unwrap();
    let bad = "INSERT INTO partner_domain (domain, server, moving_to, since, \"by\", fence, page_id) VALUES \
        ('big.ru', 70000, NULL, 'infinity', 'nobody', 0, -5), ('less.ru', -1, NULL, '-infinity', '', -3, 0), \
        ('to.ru', 1, 99999, '1066-10-14', 'rule', 2, 0)";
    server.session().execute(bad, &[]).unwrap();
    let mut rows = table.changes().unwrap();
    rows.sort_by(|a, b| a.domain.cmp(&b.domain));
    assert_eq!(names(&rows), ["big.ru", "good.ru", "less.ru", "to.ru"]);
    assert_eq!(
        (rows[0].server, rows[0].page, rows[0].since_s, rows[0].by),
        (ServerId::STRANGER, 0, 0, By::Import)
    );
    assert_eq!(
        (rows[1].server, rows[2].fence, rows[3].moving_to),
        (ServerId(1), 0, Some(ServerId::STRANGER))
    );
    let mut strangers: Vec<(Box<str>, i64)> =
        table.strangers().into_iter().map(|stranger| (stranger.domain, stranger.server)).collect();
    strangers.sort();
    assert_eq!(strangers, [("big.ru".into(), 70_000), ("less.ru".into(), -1), ("to.ru".into(), 99_999)]);
    let settled = table.settle(&[row("big.ru", 1), row("new.ru", 1)]).unwrap();
    assert_eq!((settled[0].server, settled[1].server), (ServerId::STRANGER, ServerId(1)));
}

#[test]
fn a_table_of_another_shape_is_refused_by_the_name_of_its_column_and_a_small_one_is_completed() {
    let server = PostgresServer::start();
    let mut session = server.session();
    for (made, column) in [
        ("TABLE partner_domain (name text PRIMARY KEY, server int)", "no column domain"),
        ("TABLE partner_domain (domain text PRIMARY KEY, host text)", "no column server"),
        ("TABLE partner_domain (domain text PRIMARY KEY, server text)", "server is of type text"),
        ("TABLE partner_domain (domain int PRIMARY KEY, server int)", "domain is of type integer"),
        ("TABLE partner_domain (domain text, server int)", "domain is not unique"),
        ("TABLE partner_domain (domain text, server int, UNIQUE (domain, server))", "domain is not unique"),
        ("TABLE partner_domain (domain text PRIMARY KEY, server int, since int)", "since is of type integer"),
        ("TABLE partner_domain (domain text PRIMARY KEY, server int, \"by\" bytea)", "by is of type bytea"),
        (
            "TABLE partner_domain (domain text PRIMARY KEY, server int, owner text NOT NULL)",
            "owner must be given",
        ),
        ("VIEW partner_domain AS SELECT 'a.ru'::text AS domain, 1 AS server", "no table"),
    ] {
        session.batch_execute(&format!("CREATE {made}")).unwrap();
        shape(table(&server).changes(), column);
        let kind = made.split(' ').next().unwrap();
        session.batch_execute(&format!("DROP {kind} partner_domain")).unwrap();
    }

    session
        .batch_execute(
            "CREATE TABLE partner_domain (domain varchar(255) PRIMARY KEY, server smallint, note text); \
             INSERT INTO partner_domain VALUES ('old.ru', 5, 'as it was')",
        )
        .unwrap();
    let mut completed = table(&server);
    let rows = completed.changes().unwrap();
    assert_eq!((names(&rows), rows[0].server, rows[0].fence), (vec!["old.ru"], ServerId(5), 0));
    completed.settle(&[row("old.ru", 1), row("new.ru", 1)]).unwrap();
    let note: String =
        session.query_one("SELECT note FROM partner_domain WHERE server = 5", &[]).unwrap().get(0);
    assert_eq!(note, "as it was");

    // A shape that changes while a master is connected; once mended, it is used again.
    session.batch_execute("ALTER TABLE partner_domain RENAME server TO node").unwrap();
    shape(completed.settle(&[row("x.ru", 1)]), "server");
    session.batch_execute("ALTER TABLE partner_domain RENAME node TO server").unwrap();
    once_back(|| completed.settle(&[row("x.ru", 1)]));
}

#[test]
fn who_may_not_write_is_told_what_to_grant_and_no_password_is_shown() {
    let server = PostgresServer::start();
    server
        .session()
        .batch_execute("CREATE USER guest PASSWORD 'geheim'; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        .unwrap();
    let address = server.address().replace("user=nephila", "user=guest password=geheim");
    let mut guest = Postgres::start(DatabaseUrl::parse(&address).unwrap()).unwrap();
    let answer = guest.changes();
    shape(answer.clone(), "grant");
    assert!(!format!("{answer:?}").contains("geheim"));
    for nobody in ["user=nobody-there", "user=nephila dbname=none"] {
        let address =
            format!("{} password=geheim", server.address().replace("user=nephila dbname=postgres", nobody));
        let answer = Postgres::start(DatabaseUrl::parse(&address).unwrap()).unwrap().changes();
        away(answer.clone());
        assert!(!format!("{answer:?}").contains("geheim"));
    }
}
