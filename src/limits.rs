//! Every bound of the system that is not a setting, in one place, and the relations between them.
//!
//! Settings with defaults are in [`crate::config`]; what stands here is shape: how long a ring is, how large a
//! buffer, how many of something one thread may hold.

/// A URL longer than this is not followed. Whatever URL a line of the spider protocol holds is none of those.
pub const URL_BYTES_MAX: usize = LINE_BYTES_MAX;

/// A line of the spider protocol, its LF included.
pub const LINE_BYTES_MAX: usize = 8_192;

/// A line between a master and a node, its LF included: a URL and what a reflog says of it.
pub const MASTER_LINE_BYTES_MAX: usize = LINE_BYTES_MAX + 512;
/// Connections that send lines to a master, and what its threads tell each other: one word may carry a receive buffer of
/// what a node hands over.
pub const INTAKE_LINKS_MAX: usize = 64;
pub const MASTER_NEWS_WORDS: usize = 1_024;
pub const MASTER_REPORT_WORDS: usize = 4_096;
/// Files may come to one master so many seconds later than to the other.
pub const MASTER_OVERLAP_S: u32 = 120;
/// The clocks of two masters, or of a master and a sender or a node, may be so far apart: no time that is further ahead of
/// one's own clock is believed.
pub const MASTER_AHEAD_S: u32 = 660;
/// Bytes of lines that a node hands over of one domain before it says CLOSED; the rest follows when they are durable.
pub const HANDED_BYTES_MAX: usize = 64 << 20;
/// Entries that one TAKE brings at most, whatever it asks for; and those of one that does not say.
pub const TAKE_ENTRIES_MAX: u32 = 100_000;
pub const TAKE_ENTRIES: u32 = 10_000;

/// Connections between URL servers and spiders that one process holds.
pub const LINKS_MAX: usize = 1_024;
/// Peers that one process dials, if it adds to those that it begins with, and names of them that are looked up at one time:
/// each takes a thread.
pub const LINK_DIALS_MAX: usize = 2_048;
pub const LINK_NAMES_MAX: usize = 16;
/// Masters that a node may take from.
pub const MASTERS_MAX: usize = 8;
/// Words in the rings to and from the thread that holds them; one may carry a receive buffer.
pub const LINK_RING_WORDS: usize = 1_024;
/// Orders that a spider takes beyond its free slots from a URL server that does not wait for GET; with more of them
/// its link is not read.
pub const SPIDER_BACKLOG_ORDERS: usize = 16_384;
/// Bytes that wait for a peer that does not read; with more the link is given up.
pub const LINK_OUT_BYTES_MAX: usize = 16 << 20;

/// Connections of spiders that one store server holds; more are refused.
pub const STORE_CONNECTIONS_MAX: usize = 4_096;
/// Bytes of unfinished records that one worker of a store server holds for all of its connections, or two of the largest
/// records if that is more; the connection that would make it more is closed.
pub const STORE_HELD_BYTES_MAX: usize = 512 << 20;
/// Bytes that one shard of a spider has sent to a store server, or is to send, and that are not counted. One record more is
/// taken when there are none.
pub const UNCOUNTED_BYTES_MAX: u64 = 64 << 20;
/// Records in the ring from a shard to the thread that sends them.
pub const RECORD_RING_WORDS: usize = 4_096;

/// Bits of a hash that name a partition of the crawl of a cluster, and how many partitions that makes: enough that a hundred
/// nodes get shares that differ little, and few enough that the table of their owners is one small value.
pub const PARTITION_BITS: u32 = 12;
pub const PARTITIONS: usize = 1 << PARTITION_BITS;
/// Bytes of a frame between nodes, behind its header: what one node makes another hold before a checksum was seen.
pub const PEER_FRAME_BYTES_MAX: usize = 1 << 20;
/// URLs in one batch from node to node, and its bytes: a batch is durable within milliseconds, and is sent again whole.
pub const URL_BATCH_ITEMS_MAX: usize = 500;
pub const URL_BATCH_BYTES_MAX: usize = 256 << 10;
/// Batches of one node that are held until the index takes them: twice what it may have uncounted.
pub const URL_BATCHES_HELD_MAX: usize = 128;
/// What is known of one document that is handed over.
pub const MOVED_ROW_BYTES_MAX: usize = 32 << 10;
/// The same, of all documents of one word.
pub const MOVED_ROWS_BYTES_MAX: usize = 512 << 10;
/// Lines about hosts in one word.
pub const MOVED_LINES_BYTES_MAX: usize = 64 << 10;
/// Words with documents that may be on their way to a node.
pub const MOVES_UNCOUNTED_MAX: usize = 16;
/// The same, of a copy: what a node keeps until its follower has it.
pub const COPIES_UNCOUNTED_MAX: usize = 32;
/// Bytes of a segment in one word: on its way it is several times in memory, which is to stay near. And bytes that may be on
/// their way to the node that has a copy.
pub const PAGE_PIECE_BYTES_MAX: usize = 120 << 10;
pub const PAGES_UNCOUNTED_BYTES_MAX: u64 = 16 << 20;
/// Segments that one word tells of.
pub const SEGMENTS_PER_WORD_MAX: usize = 10_000;
/// Stores that a node has: its own, and those of nodes that are gone.
pub const STORES_COPIED_MAX: usize = 1_024;
/// What one node tells to be short of its promise; those behind it are counted.
pub const SHORTFALLS_MAX: usize = 1_000;
/// Copies that one node has summed up at a time, and those that another sums up for it before it is left to wait.
pub const SUMS_ASKED_MAX: usize = 4;
/// Partitions that are handed over together.
pub const MOVED_PARTITIONS_MAX: usize = 128;
/// Bytes of a version, of an address with its port (a name has 253), and of the line that says why a node is refused.
pub const PEER_VERSION_BYTES_MAX: usize = 64;
pub const PEER_LISTEN_BYTES_MAX: usize = 262;
pub const PEER_WHY_BYTES_MAX: usize = 512;
/// Bytes of the key file of a cluster: certificate and key have a few hundred each.
pub const CLUSTER_KEY_BYTES_MAX: usize = 64 << 10;
/// Plain bytes that wait until the handshake with a peer is over: the first frames, and a large one among them.
pub const PEER_EARLY_BYTES_MAX: usize = 2 << 20;

/// Links taken from one page; the rest of a link farm is not worth its memory.
pub const LINKS_PER_PAGE_MAX: usize = 10_000;

/// Entries taken from one sitemap, its bytes without a coding (both as the protocol has them), and how deep its elements
/// may nest: four levels make a sitemap, and feeds have a few more.
pub const SITEMAP_ENTRIES_MAX: usize = 50_000;
pub const SITEMAP_BYTES_MAX: u64 = 50 << 20;
pub const SITEMAP_ELEMENTS_DEEP_MAX: usize = 32;
/// Sitemaps of sitemaps, one after the other. The protocol allows one; more than a few are a chain without an end.
pub const SITEMAPS_DEEP_MAX: u16 = 5;

/// Entries taken from one feed, and the bytes of one title or guid.
pub const FEED_ENTRIES_MAX: usize = 2_000;
pub const FEED_TEXT_BYTES_MAX: usize = 16 * 1_024;

/// Hops from a first URL before a chain of redirects is given up.
pub const REDIRECTS_MAX: u8 = 10;
/// The same for a chain that starts at /robots.txt.
pub const ROBOTS_REDIRECTS_MAX: u8 = 5;

/// Rules in one list of the settings, bytes of one as written, and what it may compile to; all of a list together may
/// come to 16 times that.
pub const RULES_MAX: usize = 10_000;
pub const RULE_BYTES_MAX: usize = 4_096;
pub const RULE_COMPILED_BYTES_MAX: usize = 1 << 20;
/// Segments of a path that are compared with each other.
pub const PATH_SEGMENTS_COMPARED: usize = 64;
/// Names of parameters to drop from queries.
pub const QUERY_DROPS_MAX: usize = 1_000;

/// Sites that we have credentials for, and the bytes of a user or a password.
pub const SITES_MAX: usize = 1_024;
pub const CREDENTIAL_BYTES_MAX: usize = 1_024;

/// A WWW-Authenticate value longer than this is not looked at; nor is a challenge with a longer realm, nonce or opaque.
pub const CHALLENGE_BYTES_MAX: usize = 8 * 1_024;
pub const CHALLENGE_PARAM_BYTES_MAX: usize = 1_024;

/// Hosts that one shard keeps cookies of, and the memory that all of them may take; beyond either the host that was unused
/// longest is forgotten. A host with one cookie takes 256 bytes and its texts, so the memory is the bound that counts, and
/// fewer hosts would save none of it.
pub const COOKIE_HOSTS_MAX: usize = 65_536;
pub const COOKIE_JAR_BYTES_MAX: usize = 16 << 20;
/// Cookies of one host, bytes of one (name, value and path), and bytes sent with one request.
pub const COOKIES_PER_HOST_MAX: usize = 50;
pub const COOKIE_BYTES_MAX: usize = 4_096;
pub const COOKIE_HEADER_BYTES_MAX: usize = 8_192;

/// Receive buffers lent by one ring, and their size. The pool stays in the second-level cache.
pub const RECV_BUFFERS: u16 = 64;
pub const RECV_BUFFER_BYTES: usize = 16 * 1024;

/// Submission and completion entries of a shard's ring.
pub const RING_SUBMISSIONS: u32 = 4_096;
pub const RING_COMPLETIONS: u32 = 16_384;

/// Fetches one shard may have open, whatever the configuration says.
pub const FETCHES_PER_SHARD_MAX: usize = 65_536;

/// Words in the ring that takes work to a shard, and in the ring that brings DONE back.
pub const WORK_RING_WORDS: usize = 8_192;
pub const DONE_RING_WORDS: usize = 8_192;

/// DONE words a shard holds back while its ring is full, before it stops taking new work.
pub const DONE_BACKLOG_MAX: usize = 65_536;

/// URLs that one shard may hold: queued, left over or open. The scheduler deals no more than this.
pub const URLS_PER_SHARD_MAX: usize = 1 << 20;

/// Questions asked of the doc index at once.
pub const CANDIDATES_PER_ASK: usize = 4_096;

/// Words in the rings to and from the index thread.
pub const INDEX_RING_WORDS: usize = 16_384;

/// Names handed to the names thread and not answered yet; more are asked for later.
pub const NAMES_ASKED_MAX: usize = 16_384;
/// Names the resolver asks servers for at once, and the sockets it may have open for them.
pub const LOOKUPS_MAX: usize = 1_024;
pub const NAME_SOCKETS_MAX: usize = 4_096;
/// Answers the resolver remembers.
pub const NAMES_CACHED_MAX: usize = 65_536;
/// Name servers in use, and addresses kept of one name.
pub const NAME_SERVERS_MAX: usize = 8;
pub const ADDRESSES_PER_NAME_MAX: usize = 16;
/// Of those, the ones that a host is tried at.
pub const ADDRESSES_PER_HOST_MAX: usize = 4;

/// Words for the scribe that may wait, and leftovers on their way back to one shard.
pub const SCRIBE_RING_WORDS: usize = 1_024;
pub const SPILL_RING_WORDS: usize = 64;
/// Bytes of crawl log that a shard gathers before it hands them on.
pub const LOG_BATCH_BYTES: usize = 32 * 1_024;
/// What a shard gathers for the scribe before it starts nothing new.
pub const SCRIBE_BACKLOG_MAX: usize = 1_024;
/// Bytes added to the journal of hosts before it is written anew with the latest lines only.
pub const JOURNAL_COMPACT_BYTES: u64 = 64 << 20;

/// Bytes of lines on their way to one spider before it gets no more.
pub const LINK_UNSENT_MAX: usize = 1 << 20;

/// Hosts whose address the scheduler remembers.
pub const HOMES_MAX: usize = 1 << 20;
/// Addresses of which the scheduler notes the shard that owns them; of any more their hash decides.
pub const OWNED_ADDRESSES_MAX: usize = 1 << 20;

/// Bytes of one segment header, and the alignment of records in a segment.
pub const SEGMENT_HEADER_BYTES: usize = 4_096;
pub const RECORD_ALIGN: usize = 8;

/// A segment is no larger: indexes tell a place in it with 32 bits.
pub const SEGMENT_BYTES_MAX: u64 = 4 << 30;

/// Segments kept ready per shard ahead of need.
pub const SEGMENTS_AHEAD: usize = 1;

/// Documents of which a shard remembers that it stored them, and documents of earlier processes that all shards know of:
/// what is in neither is stored again.
pub const DIGESTS_LIVE: usize = 1 << 16;
pub const DIGESTS_BASE_MAX: usize = 1 << 20;

/// Fingerprints of recently seen links remembered by a shard, so that most repeats never leave it.
pub const RECENT_LINKS: usize = 1 << 17;

/// A URL that was open each time its shard died is given up after this many deaths.
pub const STRIKES_MAX: u8 = 2;

/// How often a shard may be restarted before the node stops.
pub const SHARD_RESTARTS_MAX: u32 = 100;

/// Nodes that one table names, and those of them that vote.
pub const PEER_NODES_MAX: usize = 1_024;
pub const VOTERS_MAX: usize = 5;
/// Bytes of the address that a node is reached at: its length is told in one byte.
pub const PEER_ADDRESS_BYTES_MAX: usize = 255;
/// Bytes on their way to one node before it is given no more batches.
pub const PEER_UNSENT_MAX: usize = 1 << 20;
/// Takeovers that a table remembers, and ranges of partitions in one of them.
pub const TAKINGS_MAX: usize = 16;
pub const TAKING_RANGES_MAX: usize = 64;
/// Registers that a voter keeps (the table, and the beat of every node that there was), and bytes of one value: a table with
/// every node and the longest addresses fits.
pub const REGISTERS_MAX: usize = 4_096;
/// Endpoints of an etcd that keeps them.
pub const COUNCIL_ENDPOINTS_MAX: usize = 16;
/// Questions to registers outside of the nodes that have no answer yet: one to each.
pub const OUTSIDE_ASKS_MAX: usize = PEER_NODES_MAX + 2;
pub const REGISTER_BYTES_MAX: usize = 512 << 10;
/// Changes of the table that a node wants and that wait for the one before.
pub const TABLE_CHANGES_MAX: usize = 64;
/// Addresses that a keeper has lent or is asked for, nodes that wait for one of them, and bytes of what an address is owed.
pub const TICKETS_KEPT_MAX: usize = 1 << 20;
pub const TICKET_WAITERS_MAX: usize = 1_024;
pub const TICKET_LINE_BYTES_MAX: usize = 1_024;
/// Tickets that one word from node to node wants, lends or gives back, and bytes of a host that one is for, with its scheme and
/// port (a name has 253, and may end in a dot).
pub const TICKETS_PER_WORD_MAX: usize = 500;
pub const TICKET_HOST_BYTES_MAX: usize = 268;

/// After the first interrupt open fetches may take this long to end.
pub const DRAIN_US: u64 = 5_000_000;

const _: () = assert!(RECV_BUFFERS.is_power_of_two(), "a buffer ring is masked, not divided");
const _: () = assert!(RING_COMPLETIONS >= 2 * RING_SUBMISSIONS, "completions must outnumber submissions");
const _: () = assert!(DONE_BACKLOG_MAX >= FETCHES_PER_SHARD_MAX, "every open fetch can report");
const _: () = assert!(NAME_SOCKETS_MAX >= 2 * LOOKUPS_MAX, "every name open has a socket for A and for AAAA");
const _: () = assert!(DIGESTS_LIVE.is_power_of_two(), "the table of documents is masked");
const _: () = assert!(RECENT_LINKS.is_power_of_two(), "the cache of links is masked");
const _: () = assert!(LINK_OUT_BYTES_MAX >= 64 * LINE_BYTES_MAX, "a batch of lines fits");
const _: () = assert!(
    2 * COOKIES_PER_HOST_MAX * COOKIE_BYTES_MAX < COOKIE_JAR_BYTES_MAX,
    "one host never fills the jar"
);
const _: () =
    assert!(COOKIE_HOSTS_MAX * 256 <= COOKIE_JAR_BYTES_MAX, "the jar has memory for that many hosts");
const _: () = assert!(COOKIE_BYTES_MAX <= COOKIE_HEADER_BYTES_MAX, "every cookie that is kept can be sent");
const _: () = assert!(SEGMENT_HEADER_BYTES.is_multiple_of(RECORD_ALIGN));
const _: () = assert!(PARTITIONS <= u16::MAX as usize + 1, "a partition has 16 bits on the wire");
const _: () = assert!(URL_BATCH_BYTES_MAX >= 2 * URL_BYTES_MAX, "the longest URL has room in a batch");
const _: () = assert!(URL_BATCH_ITEMS_MAX <= u16::MAX as usize, "items of a batch are counted in 16 bits");
const _: () = assert!(URL_BATCH_BYTES_MAX + 64 <= PEER_FRAME_BYTES_MAX, "a batch is one frame");
const _: () = assert!(REGISTER_BYTES_MAX + 64 <= PEER_FRAME_BYTES_MAX, "a value is one frame");
const _: () = assert!(
    URL_BATCH_BYTES_MAX + MOVED_ROWS_BYTES_MAX + MOVED_LINES_BYTES_MAX + 64 <= PEER_FRAME_BYTES_MAX,
    "what is handed over at once is one frame"
);
const _: () = assert!(
    16 * 1_024 + PEER_NODES_MAX * (PEER_ADDRESS_BYTES_MAX + 18) + TAKINGS_MAX * (TAKING_RANGES_MAX * 4 + 32)
        < REGISTER_BYTES_MAX,
    "the largest table is a value of a register"
);
const _: () = assert!(REGISTERS_MAX > PEER_NODES_MAX, "every node has a beat, and there is the table");
const _: () = assert!(TICKET_WAITERS_MAX >= PEER_NODES_MAX, "every node may wait for an address");
const _: () = assert!(PEER_FRAME_BYTES_MAX + 64 <= PEER_EARLY_BYTES_MAX, "a frame may wait for a handshake");
const _: () = assert!(
    LINK_DIALS_MAX >= 2 * PEER_NODES_MAX,
    "every node is dialed, and as many that were named by hand"
);
const _: () = assert!(
    PEER_UNSENT_MAX + 4 * PEER_FRAME_BYTES_MAX <= LINK_OUT_BYTES_MAX,
    "what a node is given at the bound is not what its link is given up for"
);
