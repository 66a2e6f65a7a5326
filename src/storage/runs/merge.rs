use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;

/// Sorted sources as one, in their order. Of equal entries that of the earlier source comes first.
pub(crate) struct Merge<T, S> {
    sources: Vec<S>,
    /// The next entry of each source that is not at its end.
    heads: BinaryHeap<Reverse<(T, usize)>>,
}

impl<T: Copy + Ord, S: Iterator<Item = io::Result<T>>> Merge<T, S> {
    pub fn new(mut sources: Vec<S>) -> io::Result<Merge<T, S>> {
        let mut heads = BinaryHeap::with_capacity(sources.len());
        for (index, source) in sources.iter_mut().enumerate() {
            heads.extend(source.next().transpose()?.map(|entry| Reverse((entry, index))));
        }
        Ok(Merge { sources, heads })
    }

    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }
}

impl<T: Copy + Ord, S: Iterator<Item = io::Result<T>>> Iterator for Merge<T, S> {
    type Item = io::Result<T>;

    /// After an error the merge is of no use any more.
    fn next(&mut self) -> Option<io::Result<T>> {
        let mut least = self.heads.peek_mut()?;
        let Reverse((entry, index)) = *least;
        match self.sources[index].next() {
            Some(Ok(next)) => *least = Reverse((next, index)),
            Some(Err(error)) => return Some(Err(error)),
            None => drop(PeekMut::pop(least)),
        }
        Some(Ok(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_become_one_in_order_and_an_error_is_told() {
        let sources = vec![vec![1, 4, 4, 9], vec![], vec![2, 4], vec![0]];
        let sources: Vec<_> = sources.into_iter().map(|source| source.into_iter().map(Ok)).collect();
        let merged: io::Result<Vec<u32>> = Merge::new(sources).unwrap().collect();
        assert_eq!(merged.unwrap(), [0, 1, 2, 4, 4, 4, 9]);
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let mut merge = Merge::new(vec![vec![Ok(1), Err(broken())].into_iter()]).unwrap();
        assert!(merge.next().unwrap().is_err());
        assert!(Merge::<u32, _>::new(vec![vec![Err(broken())].into_iter()]).is_err());
    }
}
