"""Makes the dashboards: Python that writes the JSON beside this folder, which is what Grafana loads."""
