-- Whether no history has been deleted yet.
select s.history_whole from hotrow.setting s where s.one
