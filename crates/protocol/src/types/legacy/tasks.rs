//! The tasks of 2025-11-25, which later became an extension. Belay can decode them but never offers
//! them.

use crate::types::{EmptyResult, Notification, PaginatedParams, Request};

/// The key in `_meta` that names the task a message belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

record! {
    /// Work that goes on after its request was answered.
    pub struct Task {
        required {
            /// The id.
            task_id: String = "taskId",
            /// The status.
            status: TaskStatus = "status",
            /// When the task was created, in ISO 8601.
            created_at: String = "createdAt",
            /// When the task last changed, in ISO 8601.
            last_updated_at: String = "lastUpdatedAt",
        }
        optional {
            /// What is being done, for the user.
            status_message: String = "statusMessage",
            /// The polling interval in milliseconds.
            poll_interval: u64 = "pollInterval",
        }
        anything {
            /// For how many milliseconds the task is kept; `null` means without limit.
            ttl = "ttl",
        }
    }
}

words! {
    /// The status of a task.
    pub enum TaskStatus {
        /// The task is running.
        Working = "working",
        /// The task waits for input from the client.
        InputRequired = "input_required",
        /// The task has succeeded.
        Completed = "completed",
        /// The task has failed.
        Failed = "failed",
        /// The task was cancelled.
        Cancelled = "cancelled",
    }
}

record! {
    /// The result of a request that became a task.
    pub struct CreateTaskResult {
        required {
            /// The task.
            task: Task = "task",
        }
    }
}

record! {
    /// The parameters that name a task.
    pub struct TaskIdParams {
        required {
            /// The id.
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

/// `tasks/get`: the status of a task.
#[derive(Clone, Copy, Debug)]
pub enum GetTask {}

impl Request for GetTask {
    const METHOD: &'static str = "tasks/get";
    type Params = TaskIdParams;
    type Result = Task;
}

/// `tasks/result`: the result of the task's request, whose type depends on that request.
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

/// `notifications/tasks/status`, which carries the whole task.
impl Notification for Task {
    const METHOD: &'static str = "notifications/tasks/status";
}
