/// One bit for every document, in memory.
#[derive(Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub fn get(&self, doc_id: u32) -> bool {
        self.0.get(doc_id as usize / 64).is_some_and(|word| word >> (doc_id % 64) & 1 != 0)
    }

    pub fn set(&mut self, doc_id: u32, on: bool) {
        let at = doc_id as usize / 64;
        if at >= self.0.len() {
            if !on {
                return;
            }
            self.0.resize(at + 1, 0);
        }
        let bit = 1 << (doc_id % 64);
        self.0[at] = if on { self.0[at] | bit } else { self.0[at] & !bit };
    }

    pub fn ram_bytes(&self) -> usize {
        self.0.capacity() * 8
    }
}
