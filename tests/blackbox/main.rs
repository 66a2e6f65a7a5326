//! Tests of the real binary against real servers on loopback, by the promises of its command surface.
//!
//! | file         | guards                                                            |
//! |--------------|-------------------------------------------------------------------|
//! | `support`    | temp dirs, children, the farm, nginx, a server that keeps a log   |
//! | `name_server`| dnsmasq, and a name server that follows a script                  |
//! | `crawl_farm` | everything of a made-up web is stored once and byte for byte      |
//! | `farm_scenarios`| a farm is what its name says, tells its own names, and is crawled to its end |
//! | `crawl_nginx`| the same of a server that was not written here                    |
//! | `postgres_server`| a PostgreSQL of the test's own, to stop, kill and start again     |
//! | `real_support`| certificates, servers of Debian's as children, curl            |
//! | `real_servers`| what the servers of this world serve is stored as curl gets it |
//! | `real_tls`   | their TLS: versions, sessions, bad certificates, bad ends         |
//! | `slow_hosts` | slow and broken hosts hold nobody up                              |
//! | `reach`      | scope, depth, page limits, seeds files                            |
//! | `niceness`   | pauses, open requests, robots rules                               |
//! | `politeness` | fifty hosts by their server's own log, and the audit agrees with it  |
//! | `refused_rings`| where io_uring is refused, epoll does the same work             |
//! | `reload`     | settings read again by SIGHUP hold for hosts, audit and next process |
//! | `remembered` | what a host asked for outlives the process, stopped or killed     |
//! | `crowds`     | failing hosts, leftovers, crowded addresses, a full disk          |
//! | `keep_alive` | connections are used again, and dead ones cost no page            |
//! | `kept_settings`| a crawl that goes on goes on as it was told                    |
//! | `config_check`| every mistake of a settings file is told, every setting shown with who said so |
//! | `settings_files`| a file describes a whole crawl, and its mistakes are told at once |
//! | `cases`      | responses as bytes, and what must be made of them: a row each      |
//! | `responses`  | rules of HTTP and HTML, however the bytes are cut                  |
//! | `stage`      | a small web of scripted hosts, and a crawl of it                  |
//! | `hostile`    | servers that break off, stall, flood or never end harm only themselves |
//! | `codings`    | documents are stored without their coding, and bombs stay small   |
//! | `redirects`  | hops, chains and loops end, and lead nowhere that is forbidden    |
//! | `again`      | conditional requests and HEAD: what need not come does not        |
//! | `search`     | stories are found by their words, and their index is made anew     |
//! | `secrets`    | passwords and cookies work, and stay with their origin            |
//! | `escapes`    | what servers write is shown as text, and URLs mean what they mean |
//! | `database`   | two masters on one PostgreSQL: first writer wins, away, slow, another shape |
//! | `dns`        | names are resolved, and nobody else is believed or connected to   |
//! | `no_names`   | a resolver that fails is not the fault of URLs                    |
//! | `no_ports`   | a machine without free ports judges no URL by it                  |
//! | `one_address`| an address has one budget, however it is written                  |
//! | `addresses`  | a host of several addresses is tried at one after the other       |
//! | `edges`      | every failure has its exit status and one line that names it      |
//! | `event_log`  | what is told is read by people, programs and systemd's journal    |
//! | `excluded`   | what rules refuse is not failed, and comes back when they go      |
//! | `no_search`  | a build without search says so                                    |
//! | `no_seed`    | a crawl that had none of its seeds says why, and exits 1          |
//! | `wrong_command_lines` | what cannot be meant is refused with cause and mend, and makes nothing |
//! | `explain`    | of any URL it is said why it was, will or never will be fetched   |
//! | `export`     | archives of a store are what tools of other makers take them for   |
//! | `index_care` | what is known can be looked at, and carried elsewhere             |
//! | `feeds_parse`| what is made of a feed is told, and of anything else that it is none |
//! | `feeds_suite`| feeds are read as feedparser reads its own suite                  |
//! | `feeds_book` | feeds are added, imported, looked at and changed without a crawl   |
//! | `lab`        | a bench leaves a page that a browser shows, and records that can be compared |
//! | `figures`    | figures for a monitor are those of summary, log and store         |
//! | `feed_polls` | a feed is asked seldom, with conditions, when it is due, and where it has moved to |
//! | `feed_redirects` | a feed moves where it is led for good; rings fail, and what our rules refuse does not |
//! | `feed_stories`| a story is found once and fetched, through kills, however it is told |
//! | `story_texts`| a story gets its text and is found by its words; a bad page harms no other |
//! | `filters`    | lists of documents and of pending URLs are narrowed as asked      |
//! | `hints`      | what a new user is told is true, and leads on                      |
//! | `how_it_goes`| progress fits the terminal; why a crawl ended, and how to go on   |
//! | `beginnings` | a directory has one writer, and a signal is heard from the first moment |
//! | `interrupts` | Ctrl-C, kill -9, limits: what was counted is stored               |
//! | `link`       | one end of a connection between a URL server and a spider         |
//! | `master_once`| an epoch is what sort, awk and join would make of it              |
//! | `master_process`| a master as a process, and a client that speaks its lines       |
//! | `master_run` | a master takes what comes into its spool, and gives each node its queue |
//! | `scripted_master`| a master that follows a script, and a node that takes from it  |
//! | `take_from_master`| a node takes its queue, loses nothing of it, and changes masters |
//! | `masters_and_nodes`| masters and nodes as they run: domains move under load, a server is emptied, masters are killed, nothing is lost |
//! | `move_domain`| a domain that moves is asked by one node at a time, and nothing of it is forgotten |
//! | `spider`     | `nephila spider` keeps to the lines of the protocol               |
//! | `spider_store`| with `--store` it keeps a record until it is counted             |
//! | `storeserver`| `nephila storeserver` counts what is durable, and nothing else    |
//! | `urlserver`  | `nephila urlserver` keeps to them, and is nice                    |
//! | `runbooks`   | runbooks are whole, and drop-ins and lab say what they say       |
//! | `url_life`   | and loses no URL, whatever becomes of spiders and processes       |
//! | `store`      | what `store` prints and with what status                          |
//! | `manual`     | README and manual say what is so, and their examples run          |
//! | `plain_json` | JSON is as safe to look at as a table                             |
//! | `private_files`| keys are for their owner alone                                  |
//! | `file_limits`| a limit of file sizes ends nothing without a word                 |
//! | `rotation`   | crawl.log in parts loses nothing, and is audited as one           |
//! | `round_trip` | what is exported and imported is what it was, and as old          |
//! | `telling`    | lines that cannot be written are counted, and the work goes on    |
//! | `master_diff`| what only one of two masters has taken or sent is found            |
//! | `master_held`| what cannot be sent is held up to a bound, and files wait beyond it |
//! | `master_pair`| two masters that go by a hash keep their servers                  |
//! | `two_masters`| either of two masters is killed, domains move: no URL is lost, no domain is with two nodes |
//! | `master_epochs`| an epoch of a master is whole or did not happen, however it ends |
//! | `memory`     | an open connection costs little                                   |
//! | `linger`     | a crawl does not stay for what it may not ask for long            |
//! | `listener`   | over TCP only the token is heard, and nobody who floods harms a crawl |
//! | `monitoring` | figures, alerts and dashboard are what a real Prometheus takes them for |
//! | `layers`     | imports go down only                                              |
//! | `sim`        | the simulation passes and replays                                 |
//! | `operate`    | a running crawl is looked at, stopped, paused and given more URLs   |
//! | `orders`     | a spider that the test gives orders to, and what it said was DONE |
//! | `crash`      | kill -9 at any moment and any disk call loses nothing reported    |
//! | `disks`      | small file systems to fill, or to cut the power of                |
//! | `power_loss` | what was DONE survives the loss of power                          |
//! | `full_disk`  | fetching waits for room, and no page is lost over it              |
//! | `damage`     | a damaged store says so, and gives what is left                   |
//! | `restart`    | a shard that panics is restarted, and no page is lost             |
//! | `audit`      | a crawl log is proved, or the lines that break a promise are named |
//! | `parse`      | `parse` says of every row, whole and cut, exactly what is true     |
//! | `fuzz`       | what the fuzz targets assert holds of mutated inputs               |
//! | `robots`     | a robots.txt is answered for as the crawl would                   |
//! | `robots_agent`| rules are for the name that they were read for                   |
//! | `robots_whole`| robots.txt is read to its own bound, whatever documents may take |
//! | `reflog`     | files of a reflog are taken as they are, and what is wrong is named  |
//! | `query_args` | what is known of parameters is shown, and a person's word wins     |
//! | `clocks`     | a clock that was wrong is not believed once it is right           |
//! | `namespaces` | a network of the test's own, whose ways are cut one way or both     |
//! | `cluster_net`| nodes that are cut off, asleep or killed ask nobody they may not, and lose nothing |
//! | `services`   | a service manager is told the truth, and the units let a crawl run  |
//! | `machine_tree`| a machine as files, right or wrong in one setting               |
//! | `tuning`     | settings of the machine are told as they are, and come back as they were |
//! | `let_go`     | what is asked about can be read, and what was let go comes whole   |
//! | `followers`  | PostgreSQL and S3 have what is sealed, whoever is killed          |
//! | `man_pages`  | every command and topic has a page, every shell its completions   |
//! | `package`    | installed, upgraded, removed and purged as Debian promises        |

mod addresses;
mod again;
mod audit;
mod beginnings;
mod cases;
mod clocks;
mod cluster;
mod cluster_etcd;
mod cluster_net;
mod cluster_site;
mod cluster_verify;
mod codings;
mod config_check;
mod crash;
mod crawl_farm;
mod crawl_nginx;
mod crowds;
mod damage;
mod database;
mod disks;
mod dns;
mod edges;
mod escapes;
mod event_log;
mod excluded;
mod explain;
mod export;
mod farm_scenarios;
mod feed_polls;
mod feed_redirects;
mod feed_stories;
mod feeds_book;
mod feeds_parse;
mod feeds_suite;
mod figures;
mod file_limits;
mod filters;
mod first_hour;
mod followers;
mod full_disk;
mod fuzz;
mod hints;
mod hostile;
mod how_it_goes;
mod index_care;
mod interrupts;
mod keep_alive;
mod kept_settings;
mod lab;
mod layers;
mod let_go;
mod linger;
mod link;
mod listener;
mod log_server;
mod machine_tree;
mod man_pages;
mod manual;
mod master_clock;
mod master_diff;
mod master_epochs;
mod master_held;
mod master_once;
mod master_pair;
mod master_process;
mod master_run;
mod masters_and_nodes;
mod memory;
mod monitoring;
mod move_domain;
mod name_server;
mod namespaces;
mod niceness;
mod no_names;
mod no_network;
mod no_ports;
#[cfg(not(feature = "search"))]
mod no_search;
mod no_seed;
mod one_address;
mod operate;
mod orders;
mod package;
mod parse;
mod plain_json;
mod politeness;
mod postgres_server;
mod power_loss;
mod private_files;
mod query_args;
mod reach;
mod real_servers;
mod real_support;
mod real_tls;
mod redirects;
mod reflog;
mod refused_rings;
mod reload;
mod remembered;
mod responses;
mod restart;
mod resume;
mod robots;
mod robots_agent;
mod robots_whole;
mod rotation;
mod round_trip;
mod rules;
mod runbooks;
mod scripted_master;
#[cfg(feature = "search")]
mod search;
mod secrets;
mod services;
mod settings_files;
mod sim;
mod slow_hosts;
mod spider;
mod spider_store;
mod stage;
mod store;
mod store_care;
mod storeserver;
#[cfg(all(feature = "extract", feature = "search"))]
mod story_texts;
mod support;
mod take_from_master;
mod telling;
mod tuning;
mod two_masters;
mod url_life;
mod urlserver;
mod wrong_command_lines;
