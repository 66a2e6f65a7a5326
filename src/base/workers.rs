/// Who does work that can be shared: threads, where there are some.
pub trait Workers: Sync {
    fn count(&self) -> usize;

    /// Does `work` once for each number below [`Workers::count`], at once or one after the other, and comes back when all
    /// are done.
    fn each(&self, work: &(dyn Fn(usize) + Sync));
}

/// All of it is done by whoever asks.
pub struct OneWorker;

impl Workers for OneWorker {
    fn count(&self) -> usize {
        1
    }

    fn each(&self, work: &(dyn Fn(usize) + Sync)) {
        work(0);
    }
}
