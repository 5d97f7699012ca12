-- The name of the operations page's connection.
set application_name to 'hotrow page';
