//! The tasks of 2025-11-25, which later became an extension. Belay reads them and never offers
//! them.

use crate::types::{EmptyResult, Notification, PaginatedParams, Request};

/// Under this key of `_meta` a message says which task it belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

record! {
    /// Something that goes on after its request was answered.
    pub struct Task {
        required {
            /// What it is called by.
            task_id: String = "taskId",
            /// How far it is.
            status: TaskStatus = "status",
            /// When it began, in ISO 8601.
            created_at: String = "createdAt",
            /// When it last changed, in ISO 8601.
            last_updated_at: String = "lastUpdatedAt",
        }
        optional {
            /// What is being done, for a person.
            status_message: String = "statusMessage",
            /// After how many milliseconds to ask again.
            poll_interval: u64 = "pollInterval",
        }
        anything {
            /// For how many milliseconds it is kept; `null` is for ever.
            ttl = "ttl",
        }
    }
}

words! {
    /// How far a task is.
    pub enum TaskStatus {
        /// Under way.
        Working = "working",
        /// It waits for the client.
        InputRequired = "input_required",
        /// Done.
        Completed = "completed",
        /// It went wrong.
        Failed = "failed",
        /// Somebody stopped it.
        Cancelled = "cancelled",
    }
}

record! {
    /// A request was made a task.
    pub struct CreateTaskResult {
        required {
            /// The task.
            task: Task = "task",
        }
    }
}

record! {
    /// Which task.
    pub struct TaskIdParams {
        required {
            /// What it is called by.
            task_id: String = "taskId",
        }
    }
}

record! {
    /// One page of tasks.
    pub struct ListTasksResult {
        required {
            /// The tasks.
            tasks: Vec<Task> = "tasks",
        }
        optional {
            /// Where the next page begins, if there is one.
            next_cursor: String = "nextCursor",
        }
    }
}

/// `tasks/get`: how far it is.
#[derive(Clone, Copy, Debug)]
pub enum GetTask {}

impl Request for GetTask {
    const METHOD: &'static str = "tasks/get";
    type Params = TaskIdParams;
    type Result = Task;
}

/// `tasks/result`: what came of it. What that is depends on what was asked.
#[derive(Clone, Copy, Debug)]
pub enum GetTaskResult {}

impl Request for GetTaskResult {
    const METHOD: &'static str = "tasks/result";
    type Params = TaskIdParams;
    type Result = EmptyResult;
}

/// `tasks/list`.
#[derive(Clone, Copy, Debug)]
pub enum ListTasks {}

impl Request for ListTasks {
    const METHOD: &'static str = "tasks/list";
    type Params = PaginatedParams;
    type Result = ListTasksResult;
}

/// `tasks/cancel`.
#[derive(Clone, Copy, Debug)]
pub enum CancelTask {}

impl Request for CancelTask {
    const METHOD: &'static str = "tasks/cancel";
    type Params = TaskIdParams;
    type Result = Task;
}

/// A task has come further: it is told as it is.
impl Notification for Task {
    const METHOD: &'static str = "notifications/tasks/status";
}
