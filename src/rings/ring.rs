use crossbeam_queue::ArrayQueue;
use std::sync::Arc;

/// A bounded ring between two threads. A full ring gives the word back: nothing is dropped, nothing grows.
pub fn ring<T>(words: usize) -> (Sender<T>, Receiver<T>) {
    let queue = Arc::new(ArrayQueue::new(words));
    (Sender(queue.clone()), Receiver(queue))
}

/// How full a ring is, for whoever looks on.
pub struct Fill(Box<dyn Fn() -> (u64, u64) + Send + Sync>);

impl Fill {
    /// Words in it, and words that it has room for.
    pub fn read(&self) -> (u64, u64) {
        (self.0)()
    }
}

pub struct Sender<T>(Arc<ArrayQueue<T>>);

pub struct Receiver<T>(Arc<ArrayQueue<T>>);

impl<T> Sender<T> {
    pub fn push(&self, word: T) -> Result<(), T> {
        self.0.push(word)
    }

    pub fn room(&self) -> usize {
        self.0.capacity() - self.0.len()
    }
}

fn fill<T: Send + 'static>(queue: &Arc<ArrayQueue<T>>) -> Fill {
    let queue = queue.clone();
    Fill(Box::new(move || (queue.len() as u64, queue.capacity() as u64)))
}

impl<T: Send + 'static> Sender<T> {
    pub fn fill(&self) -> Fill {
        fill(&self.0)
    }
}

impl<T: Send + 'static> Receiver<T> {
    pub fn fill(&self) -> Fill {
        fill(&self.0)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        Sender(self.0.clone())
    }
}

impl<T> Receiver<T> {
    pub fn pop(&self) -> Option<T> {
        self.0.pop()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        Receiver(self.0.clone())
    }
}
