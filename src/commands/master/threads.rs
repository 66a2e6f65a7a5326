use crate::master::epoch::Workers;

/// Threads that share an epoch, for as long as it takes.
pub(super) struct Threads(pub usize);

impl Workers for Threads {
    fn count(&self) -> usize {
        self.0
    }

    fn each(&self, work: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for number in 1..self.0 {
                scope.spawn(move || work(number));
            }
            work(0);
        });
    }
}
