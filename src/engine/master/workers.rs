use crate::master::epoch::Workers;

/// Threads that share the work of an epoch: this one, and others for as long as it takes.
pub(crate) struct Threads(pub usize);

impl Workers for Threads {
    fn count(&self) -> usize {
        self.0
    }

    fn each(&self, work: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for number in 1..self.0 {
                let spawned = std::thread::Builder::new()
                    .name(format!("epoch-{number}"))
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
