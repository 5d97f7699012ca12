//! Requests of the console to the program around the gateway, which has the settings file and controls the process.

use tokio::sync::{Mutex, mpsc, oneshot};

#[derive(Debug)]
pub enum OperatorRequest {
    /// Read the settings again. The answer has the error, if any.
    Reload(oneshot::Sender<Result<(), String>>),
    /// Finish the work under way, and stop.
    Shutdown,
}

/// The channel from the console to the program.
#[derive(Debug)]
pub struct OperatorRequests {
    sender: mpsc::Sender<OperatorRequest>,
    receiver: Mutex<mpsc::Receiver<OperatorRequest>>,
}

impl Default for OperatorRequests {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(1);
        OperatorRequests { sender, receiver: Mutex::new(receiver) }
    }
}

impl OperatorRequests {
    /// For the program: the next request.
    pub async fn next(&self) -> OperatorRequest {
        match self.receiver.lock().await.recv().await {
            Some(request) => request,
            None => std::future::pending().await,
        }
    }

    /// For the console: reloads the settings.
    pub async fn reload(&self) -> Result<(), String> {
        let (answer, answered) = oneshot::channel();
        let _ = self.sender.send(OperatorRequest::Reload(answer)).await; // the receiver lives as long as this
        answered.await.unwrap_or_else(|_| Err("the gateway stops".to_owned()))
    }

    /// For the console: stops the program.
    pub async fn shutdown(&self) {
        let _ = self.sender.send(OperatorRequest::Shutdown).await; // the receiver lives as long as this
    }
}
