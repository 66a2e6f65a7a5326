use super::line::{HEAD_BYTES, Line, LineHead};
use super::row::TagMark;
use std::hint::black_box;

/// group_sum: the lines of one URL as one, with all its hits, its last time and the last tag that says something.
///
/// The table is in the order of ids, but for neighbours that wanted one place: what is read out of it is nearly sorted.
pub(super) struct Groups {
    /// Bits of the id that all lines share, from the top.
    shared: u32,
    bits: u32,
    /// Number of a group and one, or nothing; as many as 2^bits and some behind them.
    slots: Vec<u32>,
    groups: Vec<Group>,
    parts: u32,
    chunk: u32,
}

#[derive(Clone, Copy)]
struct Group {
    id: u64,
    hits: u64,
    last: Place,
    tag: Place,
    /// What that one says, so that it need not be looked at again.
    tag_mark: TagMark,
}

/// A line: its time and chunk, by which the later of two is known, the part that it lies in, and where. Nothing stands for
/// no line.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    time: u64,
    part: u32,
    /// And one.
    at: u32,
}

/// The lines of a URL as one. What their texts say is looked up when it is asked for: it lies far off.
pub(super) struct Grouped<'a> {
    group: Group,
    parts: &'a [&'a [u8]],
}

const CACHE_LINE_BYTES: usize = 64;
const BITS_MIN: u32 = 10;
/// Places behind the last, for those that find theirs taken.
const BEHIND: usize = 64;

impl Default for Groups {
    fn default() -> Groups {
        Groups::new()
    }
}

impl Groups {
    pub fn new() -> Groups {
        let (slots, groups) = (vec![0; (1 << BITS_MIN) + BEHIND], Vec::new());
        Groups { shared: 0, bits: BITS_MIN, slots, groups, parts: 0, chunk: 0 }
    }

    /// Forgets all, and is ready for about as many, or for what so many bytes of lines can be if that is less, whose ids
    /// share `shared` bits.
    pub fn clear(&mut self, shared: u32, bytes: usize) {
        self.shared = shared;
        self.groups.clear();
        self.bits = self.bits.min((bytes / HEAD_BYTES).max(1).ilog2() + 1).max(BITS_MIN);
        self.slots.clear();
        self.slots.resize((1 << self.bits) + BEHIND, 0);
        (self.parts, self.chunk) = (0, 0);
    }

    /// Adds the lines of the next part.
    pub fn add_all(&mut self, part: &[u8]) {
        let number = self.parts;
        self.parts += 1;
        let mut at = 0;
        while at < part.len() {
            let head = LineHead::read(&part[at..]);
            if let Some(chunk) = head.chunk() {
                self.chunk = chunk;
                at += HEAD_BYTES;
                continue;
            }
            let time = u64::from(head.at_s()) << 32 | u64::from(self.chunk);
            let end = at + head.bytes();
            let tag = TagMark::of(&part[end - head.tag_bytes()..end]);
            self.add(head, Place { time, part: number, at: at as u32 + 1 }, tag);
            at = end;
        }
    }

    fn add(&mut self, head: LineHead<'_>, place: Place, tag_mark: TagMark) {
        let id = head.id();
        let mut slot = self.slot_of(id);
        loop {
            match self.slots.get(slot) {
                Some(0) => break,
                Some(&number) => {
                    let group = &mut self.groups[number as usize - 1];
                    if group.id == id {
                        return group.add(head, place, tag_mark);
                    }
                }
                None => {
                    self.resize(self.bits + 1);
                    return self.add(head, place, tag_mark);
                }
            }
            slot += 1;
        }
        let tag = if tag_mark.is_none() { Place::default() } else { place };
        self.groups.push(Group { id, hits: u64::from(head.hits()), last: place, tag, tag_mark });
        self.slots[slot] = self.groups.len() as u32;
        if self.groups.len() * 2 > 1 << self.bits {
            self.resize(self.bits + 1);
        }
    }

    fn slot_of(&self, id: u64) -> usize {
        (id << self.shared >> (64 - self.bits)) as usize
    }

    fn resize(&mut self, bits: u32) {
        assert!(bits < 32, "a partition has a bound");
        self.bits = bits;
        self.slots.clear();
        self.slots.resize((1 << bits) + BEHIND, 0);
        for at in 0..self.groups.len() {
            let mut slot = self.slot_of(self.groups[at].id);
            while self.slots.get(slot).is_some_and(|&taken| taken != 0) {
                slot += 1;
            }
            match self.slots.get_mut(slot) {
                Some(place) => *place = at as u32 + 1,
                None => return self.resize(bits + 1),
            }
        }
    }

    /// Numbers of groups in the order of their ids.
    pub fn in_order(&self) -> Vec<u32> {
        let mut order: Vec<(u64, u32)> = Vec::with_capacity(self.groups.len());
        for &number in self.slots.iter().filter(|&&number| number != 0) {
            let id = self.groups[number as usize - 1].id;
            let mut at = order.len();
            order.push((id, number - 1));
            while at > 0 && order[at - 1].0 > id {
                order.swap(at, at - 1);
                at -= 1;
            }
        }
        order.into_iter().map(|(_, number)| number).collect()
    }

    /// Reads a byte or two of some groups and of their last lines. They lie anywhere, and so all of them are on their way at
    /// once, where one after the other would be waited for.
    pub fn touch(&self, numbers: &[u32], parts: &[&[u8]]) {
        let mut seen = 0;
        for &number in numbers {
            let Place { part, at, .. } = self.groups[number as usize].last;
            let part = parts[part as usize];
            let at = at as usize - 1;
            seen ^= part[at] ^ part[(at + CACHE_LINE_BYTES).min(part.len() - 1)];
        }
        black_box(seen);
    }

    /// A group. The parts are those that were added.
    pub fn grouped<'a>(&self, number: u32, parts: &'a [&'a [u8]]) -> Grouped<'a> {
        Grouped { group: self.groups[number as usize], parts }
    }

    /// Lines that say together what all those that were added say, each with its chunk: for each group the last one, and
    /// before it the one with the tag.
    pub fn for_each_line(&self, parts: &[&[u8]], mut told: impl FnMut(u32, Line<'_>)) {
        for number in self.in_order() {
            let group = &self.groups[number as usize];
            if group.tag != Place::default() && group.tag != group.last {
                told(group.tag.time as u32, Line { hits: 0, ..group.tag.line(parts) });
            }
            let mut rest = group.hits;
            loop {
                let hits = rest.min(u64::from(u32::MAX)) as u32;
                rest -= u64::from(hits);
                told(group.last.time as u32, Line { hits, ..group.last.line(parts) });
                if rest == 0 {
                    break;
                }
            }
        }
    }
}

impl Group {
    /// Takes in a line that was read later. Of one time, the later counts.
    fn add(&mut self, head: LineHead<'_>, place: Place, tag_mark: TagMark) {
        self.hits += u64::from(head.hits());
        if place.time >= self.last.time {
            self.last = place;
        }
        if !tag_mark.is_none() && place.time >= self.tag.time {
            (self.tag, self.tag_mark) = (place, tag_mark);
        }
    }
}

impl<'a> Grouped<'a> {
    pub fn id(&self) -> u64 {
        self.group.id
    }

    pub fn hits(&self) -> u64 {
        self.group.hits
    }

    /// The last time.
    pub fn at_s(&self) -> u32 {
        (self.group.last.time >> 32) as u32
    }

    /// The last tag that says something.
    pub fn tag(&self) -> TagMark {
        self.group.tag_mark
    }

    /// The last line, which URL, page, batch and priority are taken from.
    pub fn last(&self) -> Line<'a> {
        self.group.last.line(self.parts)
    }

    /// That tag in full.
    pub fn tag_text(&self) -> &'a [u8] {
        if self.group.tag_mark.is_none() { b"" } else { self.group.tag.line(self.parts).tag }
    }
}

impl Place {
    fn line<'p>(self, parts: &[&'p [u8]]) -> Line<'p> {
        Line::read(&parts[self.part as usize][self.at as usize - 1..])
    }
}
