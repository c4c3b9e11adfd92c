"""Run the jobs that the queue hands out, through the services of their hosts."""
