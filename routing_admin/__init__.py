"""Where does a task go? The project package: task routes, data plane, configuration and history."""
