use crate::base::Workers;

/// Threads that share work: this one, and others for as long as it takes.
pub(crate) struct Threads(pub usize);

impl Threads {
    /// One for each core, and no more than this.
    #[cfg_attr(not(feature = "search"), expect(dead_code))]
    pub fn at_most(most: usize) -> Threads {
        Threads(std::thread::available_parallelism().map_or(1, usize::from).min(most))
    }
}

impl Workers for Threads {
    fn count(&self) -> usize {
        self.0
    }

    fn each(&self, work: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for number in 1..self.0 {
                let spawned = std::thread::Builder::new()
                    .name(format!("worker-{number}"))
                    .spawn_scoped(scope, move || work(number));
                // Without another thread, this one does it.
                if spawned.is_err() {
                    work(number);
                }
            }
            work(0);
        });
    }
}
