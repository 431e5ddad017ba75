//! Results of running tasks that each newer one replaces.

use std::{collections::HashMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use profiler_model::TaskId;

/// Tables of the tasks that run, so that following one does not read the store each second.
#[derive(Debug)]
pub(super) struct Newest<T> {
    tables: Mutex<HashMap<TaskId, Arc<T>>>,
}

impl<T> Default for Newest<T> {
    fn default() -> Self {
        Self {
            tables: Mutex::default(),
        }
    }
}

impl<T> Newest<T> {
    fn tables(&self) -> MutexGuard<'_, HashMap<TaskId, Arc<T>>> {
        // Every change is one insertion or removal, so a holder that panicked left nothing half done.
        self.tables.lock()
    }

    pub(super) fn get(&self, task: TaskId) -> Option<Arc<T>> {
        self.tables().get(&task).cloned()
    }

    pub(super) fn put(&self, task: TaskId, table: Arc<T>) {
        self.tables().insert(task, table);
    }

    pub(super) fn remove(&self, task: TaskId) {
        self.tables().remove(&task);
    }
}
