use crossbeam_queue::ArrayQueue;
use std::sync::Arc;

/// A bounded ring between two threads. A full ring gives the word back: nothing is dropped, nothing grows.
pub fn ring<T>(words: usize) -> (Sender<T>, Receiver<T>) {
    let queue = Arc::new(ArrayQueue::new(words));
    (Sender(queue.clone()), Receiver(queue))
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
